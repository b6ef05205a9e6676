"""Every page in a real browser: drawn, silent, labelled, accessible, usable when narrow or dark."""

from typing import Any

import pytest

from app.navigation import PAGES
from tests.browser.conftest import SHOTS
from tests.browser.visitor import Visitor

axe_playwright = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-core is not installed"
)

PATHS = [page.path for page in PAGES]
CHARTS = {path: 0 if path == "search" else 1 for path in PATHS}
"""How many charts a page has at least; a search has some once it was started."""


@pytest.mark.parametrize("path", PATHS)
def test_every_page_is_sound_accessible_and_fits_a_narrow_window(
    visitor: Visitor, path: str
) -> None:
    # Fewer requests: the memory page watches every step of a run.
    visitor.open(f"{path}?requests=300", charts=CHARTS[path])
    visitor.check_sound()
    visitor.shot(path or "forecast")
    assert not _serious(visitor)
    visitor.page.set_viewport_size({"width": 800, "height": 900})
    visitor.page.wait_for_timeout(600)
    wide, seen = visitor.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= seen
    visitor.shot(f"{path or 'forecast'}-800")


def _serious(visitor: Visitor) -> dict[str, list[str]]:
    """Return the serious violations that axe-core finds, with where they are."""
    found = axe_playwright.Axe().run(visitor.page).response["violations"]
    return {
        rule["id"]: [node["html"][:200] for node in rule["nodes"]]
        for rule in found
        if rule["impact"] in ("serious", "critical")
    }


def test_dark_and_reduced_motion(server: str, chromium: Any) -> None:
    dark = Visitor(server, chromium, SHOTS, color_scheme="dark", reduced_motion="reduce")
    dark.open()
    background = dark.page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    assert background == "rgb(14, 17, 23)"
    dark.check_sound()
    assert not _serious(dark)
    dark.shot("forecast-dark")
    dark.leave()


def test_pages_are_reached_by_their_names(visitor: Visitor) -> None:
    visitor.open()
    for page in PAGES[1:]:
        visitor.page.get_by_role("link", name=page.title).first.click()
        visitor.page.wait_for_url(f"**/{page.path}**")
        visitor.settle(charts=0)
        assert "Something went wrong" not in visitor.text
