"""What a knob stands at, what it is offered, and how values are read and shown."""

from collections.abc import Mapping
from typing import Any

from app.knobs.knob import Knob, Value
from twin.errors import InputError
from twin.report.numbers import count

_TRUE, _FALSE = ("true", "1", "on"), ("false", "0", "off")


def value_at(data: Mapping[str, Any], key: str) -> Value:
    """Return what a scenario's plain data has at a dotted key; None: nothing."""
    node: Any = data
    for part in key.split("."):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node if isinstance(node, (bool, int, float, str)) else None


def options_of(knob: Knob, *own: Value) -> list[Value]:
    """Return what a knob offers, with a scenario's own values at their place."""
    extra = [value for value in dict.fromkeys(own) if value not in knob.options]
    numbers = [v for v in (*knob.options, *extra) if _is_number(v)]
    others = [v for v in (*knob.options, *extra) if not _is_number(v)]
    return [*others, *sorted(numbers)] if extra else list(knob.options)  # type: ignore[type-var]


def shown(value: Value, default: Value = None) -> str:
    """Return a value as a reader sees it; None as the default that stands for it."""
    if value is None:
        return "default" if default is None else f"default ({shown(default)})"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return count(value)
    return f"{value:g}" if isinstance(value, float) else value


def parsed(knob: Knob, text: str) -> Value:
    """Return the value that a link or a typed text gives.

    Raises:
        InputError: it is none that the knob can have.
    """
    text = text.strip().replace(",", "")
    if text.lower() in ("default", "none", "") and None in knob.options:
        return None
    if knob.kind == "flag":
        return _flag(knob, text)
    if knob.kind in ("whole", "number"):
        return _number(knob, text)
    for option in knob.options:
        if option is not None and text.lower() == str(option).lower():
            return option
    raise InputError(f"{text[:40]!r} is no {knob.key}", remedy=f"choose one of {_list(knob)}")


def written(value: Value) -> str:
    """Return a value as a link holds it and a command line takes it."""
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def yaml_value(value: Value) -> str:
    """Return a value as `--set` takes it."""
    return "null" if value is None else written(value)


def _flag(knob: Knob, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise InputError(f"{text[:40]!r} is no {knob.key}", remedy="write true or false")


def _number(knob: Knob, text: str) -> Value:
    whole = knob.kind == "whole"
    try:
        value: Value = int(text) if whole else float(text)
    except ValueError:
        kind = "whole number" if whole else "number"
        raise InputError(f"{text[:40]!r} is no {kind}", where=knob.key) from None
    return value


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _list(knob: Knob) -> str:
    return ", ".join(written(option) for option in knob.options)
