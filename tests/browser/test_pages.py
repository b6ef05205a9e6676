"""Every page in a real browser: drawn, silent, labelled, usable when narrow or dark."""

import pytest

from app.navigation import PAGES
from tests.browser.visitor import Visitor

PATHS = [page.path for page in PAGES]
CHARTS = {path: 0 if path == "search" else 1 for path in PATHS}
"""How many charts a page has at least; a search has some once it was started."""


@pytest.mark.parametrize("path", PATHS)
def test_every_page_is_drawn_without_an_error(visitor: Visitor, path: str) -> None:
    visitor.open(path, charts=CHARTS[path])
    visitor.check_sound()
    visitor.shot(path or "forecast")


@pytest.mark.parametrize("path", PATHS)
def test_at_800_pixels_nothing_is_cut_off(server, chromium, path: str) -> None:
    from tests.browser.conftest import SHOTS

    narrow = Visitor(server, chromium, SHOTS, viewport={"width": 800, "height": 900})
    narrow.open(path, charts=CHARTS[path])
    wide, seen = narrow.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= seen
    narrow.shot(f"{path or 'forecast'}-800")
    narrow.leave()


def test_dark_and_reduced_motion(server, chromium) -> None:
    from tests.browser.conftest import SHOTS

    dark = Visitor(server, chromium, SHOTS, color_scheme="dark", reduced_motion="reduce")
    dark.open()
    background = dark.page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    assert background == "rgb(14, 17, 23)"
    dark.check_sound()
    dark.shot("forecast-dark")
    dark.leave()


def test_pages_are_reached_by_their_names(visitor: Visitor) -> None:
    visitor.open()
    for page in PAGES[1:]:
        visitor.page.get_by_role("link", name=page.title).first.click()
        visitor.page.wait_for_url(f"**/{page.path}**")
        visitor.settle(charts=0)
        assert "Something went wrong" not in visitor.text
