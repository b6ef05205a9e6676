"""The sentences a page opens with: whether the objective is met, and how sure that is."""

import streamlit as st

from app.answers.forecast import Forecast
from app.answers.sureness import sure_sentence
from twin.report.verdict import bound_sentence, verdict

_ICONS = {True: ":material/check_circle:", False: ":material/warning:", None: ":material/help:"}


def verdict_line(found: Forecast) -> None:
    """Say whether the setup meets its objective, how sure that is, and what binds its steps."""
    st.markdown(f"#### {_ICONS[found.summary['slo_met']]} {verdict(found.summary)}")
    st.caption(f"{sure_sentence(found)} {bound_sentence(found.summary)}")
