"""The script that Streamlit runs for every redraw: navigation, sidebar, page.

It does not stand beside `app/pages`: Streamlit would take those files for scripts of its own.
"""

import logging
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app.navigation import PAGES, Page
from app.parts.frame import framed

# Not a Material symbol: browsers would fetch that from a font server.
_ICON = Path(__file__).resolve().parent.parent / "assets" / "icon.png"
_LOG = logging.getLogger("servetwin.app")


def main() -> None:
    """Draw the page that the address names, within what all pages share.

    The sidebar is drawn here and not by the page: widgets of a page, and what was uploaded with
    them, are forgotten when another page is opened.
    """
    st.set_page_config(page_title="servetwin", page_icon=str(_ICON), layout="wide")
    pages = [
        st.Page(
            _calm(page),
            title=page.title,
            icon=page.icon,
            url_path=page.path or None,
            default=not page.path,
        )
        for page in PAGES
    ]
    chosen = st.navigation(pages, position="top")
    _calmly("frame", lambda: framed(chosen.run))


def _calm(page: Page) -> Callable[[], None]:
    """Return the page's function."""

    def draw() -> None:
        _calmly(page.title, page.draw)

    draw.__name__ = page.title.lower()
    return draw


def _calmly(what: str, draw: Callable[[], None]) -> None:
    """Draw something; whatever goes wrong in it is one line, and the app goes on."""
    try:
        draw()
    except Exception as error:
        _LOG.exception("servetwin: failed to draw %s", what)
        st.error(
            f"Something went wrong on this page ({type(error).__name__}). Other pages and "
            "your settings are unharmed; change a knob or reload.",
            icon=":material/error:",
        )


main()
