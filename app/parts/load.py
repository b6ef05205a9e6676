"""The load tab: the setup at other loads, worked out in a process of its own."""

import streamlit as st

from app.parts.figure import figure
from app.parts.footer import command_line
from app.parts.results import answered
from app.state.session import Session
from twin.report.charts.chart import Chart


def load_tab(visitor: Session) -> None:
    """Draw what happens at other loads; while it is worked on, the last answer stays.

    Raises:
        InputError: the setup cannot be simulated.
    """
    setup = visitor.setup()
    found = answered(visitor, "load", setup.digest(), {"setup": setup.as_dict()})
    if found is None:
        found = visitor.last.get("load")
        if found is None:
            st.caption("A dozen simulations at a quarter to four times this load.")
            return
        st.caption("Updating: what is below is of the last setup.")
    visitor.last["load"] = found
    limit, breaks, bend = found["sentences"]
    st.markdown(f"**{limit}** {breaks}")
    st.caption(bend)
    figure(Chart(**found["chart"]), key="chart-load")
    with st.expander("By load"):
        rows = [dict(zip(found["head"], row, strict=True)) for row in found["rows"]]
        st.dataframe(rows, hide_index=True, key="load-rows")
    for note in found["notes"]:
        st.caption(note)
    st.code(command_line(visitor, command="sweep"), language=None, wrap_lines=True)
