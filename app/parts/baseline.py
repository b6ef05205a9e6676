"""A/B: what the view is compared with, and pinning it."""

import streamlit as st

from app.knobs.table import BY_KEY
from app.knobs.values import shown
from app.parts.words import plain
from app.state.session import Session
from app.state.view import View


def baseline_bar(visitor: Session, *, compared: bool) -> None:
    """Say what A is; pin what is on screen as A, or go back to A."""
    a = visitor.baseline or visitor.view.plain()
    tail = "" if compared else " B is the same so far: turn a knob."
    brought = _brought(visitor)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"A (baseline): {told(a)}{brought}. B: {told(visitor.view)}{brought}.{tail}")
        if st.button("Pin B as A", key="pin", disabled=not compared):
            visitor.baseline = visitor.view
            st.rerun()
        if st.button("Back to A", key="back-to-a", disabled=not compared):
            visitor.show(a)
            st.rerun()


def told(view: View) -> str:
    """Return a view in a few words."""
    changes = ", ".join(
        f"{BY_KEY[key].short} {shown(value)}" for key, value in view.changes.items()
    )
    return f"{view.scenario} with {changes}" if changes else f"{view.scenario} as it is"


def _brought(visitor: Session) -> str:
    """Name the uploads that stand in for the scenario's own trace and network."""
    uploads = (visitor.uploads.trace, visitor.uploads.model)
    names = [plain(upload.name) for upload in uploads if upload is not None]
    return f", on your {' and '.join(names)}" if names else ""
