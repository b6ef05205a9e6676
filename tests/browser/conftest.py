"""One server and one Chromium for all browser tests; every test gets a visitor of its own."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.visitor import Visitor

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("streamlit", reason="Streamlit is not installed")

ROOT = Path(__file__).resolve().parents[2]
SHOTS = Path(os.environ.get("SERVETWIN_SHOTS", ROOT / "out" / "screenshots"))

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


def _chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    message = "no Chromium on this machine; on Debian: apt-get install chromium"
    if os.environ.get("SERVETWIN_REQUIRE_BROWSER") == "1":
        pytest.fail(message)
    pytest.skip(message)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of an app started as a user starts it."""
    port = _free_port()
    home = tmp_path_factory.mktemp("home")
    log = home / "server.log"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SERVETWIN_HOME": str(home)}
    command = [sys.executable, "-P", "-m", "app", "--port", str(port)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, process, log)
        yield address
    finally:
        process.terminate()
        process.wait(10)
    assert "Traceback" not in log.read_text(), log.read_text()[-3000:]


def _wait(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"no health after two minutes: {log.read_text()}")


@pytest.fixture(scope="session")
def chromium() -> Iterator["sync_api.Browser"]:
    """Return a running browser."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visitor(server: str, chromium: "sync_api.Browser") -> Iterator[Visitor]:
    """Return a visitor; at the end nothing may have gone wrong in its console."""
    one = Visitor(server, chromium, SHOTS)
    yield one
    one.leave()


@pytest.fixture
def another(server: str, chromium: "sync_api.Browser") -> Iterator[Visitor]:
    """Return a second visitor, at the same time."""
    one = Visitor(server, chromium, SHOTS)
    yield one
    one.leave()
