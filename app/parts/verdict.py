"""The sentence a page opens with."""

import streamlit as st

from app.answers.forecast import Forecast
from twin.report.verdict import bound_sentence, verdict


def verdict_line(found: Forecast) -> None:
    """Say whether the setup meets its objective, with the figures that decide it."""
    met = found.summary["slo_met"]
    icon = {True: ":material/check_circle:", False: ":material/warning:"}.get(
        met, ":material/help:"
    )
    st.markdown(f"#### {icon} {verdict(found.summary)}")
    st.caption(bound_sentence(found.summary))
