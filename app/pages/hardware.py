"""Hardware: what the GPU on screen can do, what the setup asks of it, and how sure that is."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from app.answers.hardware.calibration import (
    Calibration,
    all_calibrations,
    calibration_of,
    measure_commands,
    table_rows,
)
from app.answers.hardware.collectives import KINDS, collectives_of
from app.answers.hardware.footprint import footprint_of
from app.answers.hardware.kernels import kernels_of
from app.answers.hardware.layout import layout_answer
from app.answers.hardware.roofline import roofline_of
from app.parts.figure import figure
from app.parts.footer import command_line
from app.parts.results import calmly, forecast_of
from app.state.session import Session, session

_GUIDE = "docs/guide/calibrate.md"
_TABS = ("Roofline", "Kernels", "Memory", "KV layout", "Collectives", "Calibration")


def hardware_page() -> None:
    """Draw the page."""
    visitor = session()
    calmly(lambda: _draw(visitor))


def _draw(visitor: Session) -> None:
    state = _kept(visitor, "state", lambda: calibration_of(visitor.setup().scenario()))
    _calibration_line(visitor, state)
    drawn = (_roofline, _kernels, _memory, _layout, _collectives, _calibrations)
    tabs = st.tabs(list(_TABS), key="hardware-tabs", on_change="rerun")
    for tab, draw in zip(tabs, drawn, strict=True):
        with tab:
            if tab.open:
                # What one tab cannot tell is no reason to hide the others.
                calmly(lambda draw=draw: draw(visitor))  # type: ignore[misc]


def _kept(visitor: Session, what: str, ask: Callable[[], Any], more: str = "") -> Any:
    """Return an answer about the setup on screen, from the shelf if it was given before."""
    key = f"hardware {what} {more} {visitor.setup().digest()}"
    found = visitor.shelf.get(key)
    if found is None:
        found = ask()
        visitor.shelf.put(key, found)
    return found


def _calibration_line(visitor: Session, state: Calibration) -> None:
    icon = ":material/check_circle:" if state.calibrated else ":material/warning:"
    st.markdown(f"##### {icon} {state.sentence()}")
    if state.state != "published":
        st.markdown(state.error_sentence())
    about = "; ".join(filter(None, [state.source, *state.notes]))
    st.caption(f"Source: {about}.")
    if not state.calibrated:
        _how_to(visitor)


def _how_to(visitor: Session) -> None:
    st.caption(f"On that GPU, about ten minutes ({_GUIDE}); the last line forecasts with it:")
    st.code(measure_commands(command_line(visitor)), language=None)


def _running(visitor: Session) -> tuple[bool, float | None]:
    """Whether the forecast is there, and its mean of running requests."""
    found = forecast_of(visitor, visitor.setup())
    if found is None:
        st.caption("The batch is the forecast's, which is being worked on.")
        return False, None
    return True, found.summary["running"]["mean"]


def _roofline(visitor: Session) -> None:
    ready, running = _running(visitor)
    if not ready:
        return
    answer = _kept(visitor, "roofline", lambda: roofline_of(visitor.setup(), running), str(running))
    st.markdown(f"**{answer.sentence}**")
    figure(answer.chart, key="hardware-roofline")
    st.caption(answer.basis)
    _notes(answer.notes)
    _table(answer.rows, "hardware-operations")


def _kernels(visitor: Session) -> None:
    answer = _kept(visitor, "kernels", lambda: kernels_of(visitor.setup()))
    if not answer.profile:
        st.info(f"{answer.scatter.alt} Prices are physics over published figures: error unknown.")
        return
    _notes(answer.notes)
    figure(answer.scatter, key="hardware-modelled")
    figure(answer.ratio, key="hardware-ratio")
    st.caption("Held-out error by family, as the profile stores it, over all held-out rows")
    _table(answer.errors, "hardware-errors")
    st.code(f"twin-calibrate holdout {answer.profile}", language=None)


def _memory(visitor: Session) -> None:
    answer = _kept(visitor, "footprint", lambda: footprint_of(visitor.setup()))
    st.markdown(f"**{answer.sentence}**")
    figure(answer.chart, key="hardware-footprint")
    _table(answer.constants, "hardware-constants")


def _layout(visitor: Session) -> None:
    answer = _kept(visitor, "layout", lambda: layout_answer(visitor.setup()))
    st.markdown(f"**{answer.facts[-1]}**")
    for fact in answer.facts[:-1]:
        st.caption(fact)
    figure(answer.chart, key="hardware-bytes")
    st.caption("Sizes, what one layer reads from DRAM, and the useful share of sectors")
    _table(answer.sizes, "hardware-sizes")
    st.caption("Attention of one layer in one decode step")
    _table(answer.steps, "hardware-steps")
    _notes(answer.notes)
    st.code(command_line(visitor, command="memory"), language=None, wrap_lines=True)


def _collectives(visitor: Session) -> None:
    kind = st.segmented_control(
        "Collective",
        list(KINDS),
        default=next(iter(KINDS)),
        format_func=KINDS.__getitem__,
        key="hardware-collective",
        required=True,
    )
    ready, running = _running(visitor)
    if not ready:
        return
    answer = _kept(
        visitor,
        "collectives",
        lambda: collectives_of(visitor.setup(), kind, running),
        f"{kind} {running}",
    )
    st.markdown(f"**{answer.sentence}**")
    figure(answer.chart, key="hardware-collectives")
    _notes(answer.notes)


@st.cache_data(show_spinner=False)
def _every_gpu() -> list[dict[str, Any]]:
    """Shipped profiles do not change while the server runs."""
    return table_rows(all_calibrations())


def _calibrations(visitor: Session) -> None:
    st.caption("Held-out errors are median / P90 in per cent, of rows no table or fit saw.")
    _table(_every_gpu(), "hardware-gpus")
    st.code("twin gpus", language=None)
    _how_to(visitor)


def _notes(notes: list[str]) -> None:
    for note in notes:
        st.caption(note)


def _table(rows: list[dict[str, Any]], key: str) -> None:
    """Draw a table; floats show three significant digits."""
    floats = {name for row in rows for name, value in row.items() if isinstance(value, float)}
    columns = {name: st.column_config.NumberColumn(format="%.3g") for name in floats}
    st.dataframe(rows, hide_index=True, width="stretch", column_config=columns, key=key)
