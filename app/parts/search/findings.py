"""What a study says: verdict, charts, tables."""

from collections.abc import Callable

import streamlit as st

from app.answers.search.study import Findings, Look, Table
from app.parts.figure import figure

_ICONS = {
    "adopt": ":material/check_circle:",
    "keep the default": ":material/shield:",
    "nothing keeps the constraints": ":material/warning:",
}
_LATER = "Once the study is judged."
TABS = ("Ten best", "Importance", "Gains", "Sensitivity", "What binds", "Validate and export")


def verdict(found: Findings) -> None:
    """Draw the sentence that a judged study comes to."""
    if found.sentence:
        st.markdown(f"#### {_ICONS.get(found.decision, ':material/help:')} {found.sentence}")


def first_charts(found: Findings, now: Look) -> None:
    """Draw the trials: against each other, and as they came."""
    if not now.done:
        st.caption("Charts appear when the first trial has ended: the scenario's own policy.")
        return
    names = [name for name in ("tradeoff", "trials") if name in found.charts]
    for place, name in zip(st.columns(len(names)), names, strict=True):
        with place:
            figure(found.charts[name], key=f"search-{name}")


def details(found: Findings, deploy: Callable[[], None]) -> None:
    """Draw the rest in tabs; only the open one is drawn.

    Args:
        found: what the study says.
        deploy: draws the last tab.
    """
    draws: dict[str, Callable[[], None]] = {
        "Ten best": lambda: _best(found),
        "Importance": lambda: _with_table(found, "importance", "importance", "All knobs"),
        "Gains": lambda: _gains(found),
        "Sensitivity": lambda: _with_table(found, "sensitivity", "neighbours", "All objectives"),
        "What binds": lambda: _binds(found),
        "Validate and export": deploy,
    }
    for tab, name in zip(
        st.tabs(list(TABS), key="search-tabs", on_change="rerun"), TABS, strict=True
    ):
        with tab:
            if tab.open:
                draws[name]()


def table(rows: Table) -> None:
    """Draw a table of text."""
    st.table([dict(zip(rows.head, row, strict=True)) for row in rows.rows])


def _best(found: Findings) -> None:
    rows = found.tables.get("best")
    if rows is None:
        st.caption("No changed policy keeps every limit so far.")
        return
    st.caption("On the traffic of the trials, where the best of many look better than they are.")
    table(rows)


def _with_table(found: Findings, chart: str, rows: str, title: str) -> None:
    if chart not in found.charts:
        st.caption(_LATER)
        return
    figure(found.charts[chart], key=f"search-{chart}")
    if rows in found.tables:
        with st.expander(title):
            table(found.tables[rows])


def _gains(found: Findings) -> None:
    if "gains" not in found.charts:
        st.caption(_LATER)
        return
    figure(found.charts["gains"], key="search-gains")
    st.caption(found.rule)
    for name in ("gains", "limits"):
        if name in found.tables:
            table(found.tables[name])
    if "lengths" in found.tables:
        with st.expander("How long the runs are"):
            st.caption(found.edges)
            table(found.tables["lengths"])
    for note in found.notes:
        st.markdown(f"- {note}")


def _binds(found: Findings) -> None:
    if not found.sentence:
        st.caption(_LATER)
        return
    for sentence in found.binds or ("Nothing could be run that says.",):
        st.markdown(sentence)
