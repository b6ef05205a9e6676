"""The sidebar: scenario, uploads, and every knob under the engine's own name."""

import streamlit as st

from app.knobs.knob import Knob, Value
from app.knobs.table import GROUPS, KNOBS, OBJECTIVE
from app.knobs.values import shown
from app.parts.standing import Standing, standing
from app.parts.uploading import uploading
from app.parts.widget import turned, widget_key
from app.state.link import LEAST_USD, MOST_USD
from app.state.session import Session
from app.state.view import UPLOADED, View
from twin.load.examples import example_names


def sidebar(visitor: Session) -> None:
    """Draw the sidebar and take over what was turned."""
    with st.sidebar:
        _choose_scenario(visitor)
        uploading(visitor)
        now = standing(visitor)
        changes: dict[str, Value] = {}
        price = None
        for group in GROUPS:
            rows = [k for k in KNOBS if k.group == group and k.applies(now.engine, now.workload)]
            with st.expander(group, expanded=True):
                for knob in rows:
                    changes |= _turned(knob, now, visitor)
                if group == OBJECTIVE:
                    price = _price(visitor)
        visitor.view = View(visitor.view.scenario, changes, price)
        if changes and st.button("Reset every knob", key="reset-all"):
            visitor.show(visitor.view.plain())
            st.rerun()


def _choose_scenario(visitor: Session) -> None:
    names = example_names()
    if visitor.uploads.scenario is not None:
        names = [UPLOADED, *names]
    chosen = st.selectbox(
        "Scenario",
        names,
        index=names.index(visitor.view.scenario),
        key=f"scenario-{visitor.generation}",
        help="Where to start from; every knob below begins where this scenario has it.",
    )
    if chosen != visitor.view.scenario:
        visitor.show(View(chosen))
        st.rerun()


def _turned(knob: Knob, now: Standing, visitor: Session) -> dict[str, Value]:
    """Draw one knob; return its change, if it is not where the scenario has it."""
    base = now.base(knob)
    value = turned(knob, now, visitor)
    if value == base and isinstance(value, bool) == isinstance(base, bool):
        return {}
    told = shown(base, now.default(knob))
    key = widget_key(knob, visitor)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"● scenario: {told}")
        st.button(
            "Reset",
            key=f"reset-{key}",
            help=f"Reset {knob.title(now.engine)} to {told}",
            type="tertiary",
            on_click=_reset,
            args=(key, base),
        )
    return {knob.key: value}


def _price(visitor: Session) -> float | None:
    key = f"price-{visitor.generation}"
    if key not in st.session_state:
        st.session_state[key] = visitor.view.usd_per_gpu_hour
    value = st.number_input(
        "price ($/GPU-hour)",
        min_value=LEAST_USD,
        max_value=MOST_USD,
        value=None,
        step=0.1,
        format="%g",
        key=key,
        placeholder="cost in GPU-hours",
        help="what an hour of one GPU costs you; none: cost is told in GPU-hours",
    )
    return None if value is None else float(value)


def _reset(key: str, base: Value) -> None:
    st.session_state[key] = base
