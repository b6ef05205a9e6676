"""One knob as a Streamlit widget."""

import streamlit as st

from app.knobs.knob import Knob, Value
from app.knobs.values import options_of, parsed, shown
from app.parts.standing import Standing
from app.parts.words import plain
from app.state.session import Session
from twin.errors import InputError


def widget_key(knob: Knob, visitor: Session) -> str:
    """Return the widget's key: another one whenever all widgets are to be made anew."""
    return f"knob-{knob.short}-{visitor.generation}"


def turned(knob: Knob, now: Standing, visitor: Session) -> Value:
    """Draw a knob and return what it stands at."""
    key, base = widget_key(knob, visitor), now.base(knob)
    if key not in st.session_state:
        st.session_state[key] = visitor.view.changes.get(knob.key, base)
    title = knob.title(now.engine)
    if knob.kind == "flag":
        return bool(st.toggle(title, key=key, help=knob.about))
    if knob.kind == "number":
        return _number(knob, title, key, now)
    return _choice(knob, title, key, now)


def _number(knob: Knob, title: str, key: str, now: Standing) -> Value:
    current = st.session_state[key]
    if current is not None:
        st.session_state[key] = float(current)
    step = 0.1 if current is None or current < 5 else 1.0
    value = st.number_input(
        title,
        min_value=_least(knob, current, now.base(knob)),
        value=None,
        step=0.01 if current is not None and current < 0.2 else step,
        format="%g",
        key=key,
        help=knob.about,
        placeholder="not asked",
    )
    return None if value is None else float(value)


def _least(knob: Knob, *standing: Value) -> float | None:
    """Return the least number to offer: a scenario or a link may stand below the knob's own."""
    at = [float(value) for value in standing if isinstance(value, (int, float))]
    return min(knob.low, *at) if knob.low and at else knob.low or None


def _choice(knob: Knob, title: str, key: str, now: Standing) -> Value:
    base, default = now.base(knob), now.default(knob)
    current = st.session_state[key]
    if isinstance(current, str) and knob.kind == "whole":
        current = st.session_state[key] = _typed(knob, current, base)
    value = st.selectbox(
        title,
        options_of(knob, base, current),
        format_func=lambda one: one if isinstance(one, str) else shown(one, default),
        key=key,
        help=knob.about,
        accept_new_options=knob.kind == "whole",
    )
    return _typed(knob, value, base) if isinstance(value, str) and knob.kind == "whole" else value


def _typed(knob: Knob, text: str, base: Value) -> Value:
    try:
        return parsed(knob, text)
    except InputError as error:
        st.caption(f"▲ {plain(str(error))}")
        return base
