"""One server and one Chromium for all browser tests; every test gets a visitor of its own."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.server import CHROMIUM_FLAGS, ROOT, chromium_path, served
from tests.browser.visitor import Visitor

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("streamlit", reason="Streamlit is not installed")

SHOTS = Path(os.environ.get("SERVETWIN_SHOTS", ROOT / "out" / "screenshots"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a running app."""
    with served(tmp_path_factory.mktemp("home")) as address:
        yield address


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Return a running browser; without one: skip, or fail where one is required."""
    try:
        path = chromium_path()
    except FileNotFoundError as error:
        if os.environ.get("SERVETWIN_REQUIRE_BROWSER") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visitor(server: str, chromium: Any) -> Iterator[Visitor]:
    """Return a visitor; at the end nothing may have gone wrong in its console."""
    one = Visitor(server, chromium, SHOTS)
    yield one
    one.leave()


@pytest.fixture
def another(server: str, chromium: Any) -> Iterator[Visitor]:
    """Return a second visitor, at the same time."""
    one = Visitor(server, chromium, SHOTS)
    yield one
    one.leave()
