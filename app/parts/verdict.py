"""The sentences a page opens with: whether the objective is met, and how sure that is."""

import streamlit as st

from app.answers.forecast.forecast import Forecast
from app.answers.forecast.sureness import sure_sentence, sureness
from app.parts.words import plain
from twin.report.terminal import GROWING
from twin.report.verdict import bound_sentence, verdict

_ICONS = {True: ":material/check_circle:", False: ":material/warning:", None: ":material/help:"}


def verdict_line(found: Forecast) -> None:
    """Say whether the setup meets its objective, how sure that is, and what binds its steps.

    Nothing is marked as met that the forecast's error leaves open.
    """
    met, sure = found.summary["slo_met"], sureness(found)
    icon = _ICONS[met if sure == "sure" else None]
    first = {"close": "Too close to call. By the forecast: ", "unknown": "Error unknown. "}
    st.markdown(f"#### {icon} {first.get(sure, '')}{verdict(found.summary)}")
    st.caption(f"{sure_sentence(found)} {bound_sentence(found.summary)}")
    notes = [*([GROWING] if found.summary["queue_grows"] else []), *found.notes]
    if notes:
        with st.expander(f"What to keep in mind ({len(notes)})"):
            st.markdown("\n".join(f"- {plain(note)}" for note in notes))
