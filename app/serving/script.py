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


def _calm(page: Page) -> Callable[[], None]:
    """Return the page's function; whatever goes wrong in it is one line, and the app goes on."""

    def draw() -> None:
        try:
            framed(page.draw)
        except Exception as error:
            _LOG.exception("page %s failed", page.title)
            st.error(
                f"Something went wrong on this page ({type(error).__name__}). Other pages and "
                "your settings are unharmed; change a knob or reload.",
                icon=":material/error:",
            )

    draw.__name__ = page.title.lower()
    return draw


def main() -> None:
    """Draw the page that the address names."""
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
    st.navigation(pages, position="top").run()


main()
