"""What stands around every page: sidebar before it, link and command after it."""

from collections.abc import Callable

import streamlit as st

from app.parts.footer import footer
from app.parts.sidebar import sidebar
from app.parts.words import plain
from app.state.link import query
from app.state.session import session


def framed(page: Callable[[], None]) -> None:
    """Draw a page with its sidebar and its footer, and keep the address up to date."""
    visitor = session()
    sidebar(visitor)
    for sentence in visitor.told:
        st.warning(plain(sentence), icon=":material/info:")
    digest = visitor.setup().digest()
    if visitor.link_digest and not digest.startswith(visitor.link_digest):
        st.caption("Made with another version: figures may differ from those the link was made of.")
    page()
    footer(visitor)
    study = visitor.studies[-1] if visitor.studies else ""
    asked = query(visitor.view, visitor.baseline, digest, study)
    if dict(st.query_params) != asked:
        st.query_params.from_dict(asked)
