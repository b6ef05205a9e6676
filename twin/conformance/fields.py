"""Typed look-ups in a parsed recording, with errors that name file and key."""

from collections.abc import Callable
from typing import Any, TypeVar

from twin.errors import InputError

T = TypeVar("T")

Check = Callable[[Any], bool]


def is_integer(value: Any) -> bool:
    """Whether `value` is a whole number; JSON's true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether `value` is a finite number."""
    return isinstance(value, (int, float)) and not is_boolean(value) and -1e300 < value < 1e300


def is_boolean(value: Any) -> bool:
    """Whether `value` is true or false."""
    return isinstance(value, bool)


def is_text(value: Any) -> bool:
    """Whether `value` is a string."""
    return isinstance(value, str)


def is_object(value: Any) -> bool:
    """Whether `value` is a JSON object."""
    return isinstance(value, dict)


def optional(check: Check) -> Check:
    """Return a check that also accepts null."""
    return lambda value: value is None or check(value)


def list_of(check: Check) -> Check:
    """Return a check for a list whose items all pass `check`."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def row(*checks: Check) -> Check:
    """Return a check for a list of exactly these columns."""
    return lambda value: (
        isinstance(value, list)
        and len(value) == len(checks)
        and all(check(item) for check, item in zip(checks, value, strict=True))
    )


def object_of(check: Check) -> Check:
    """Return a check for an object whose values all pass `check`."""
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


Schema = dict[str, tuple[Check, str]]
"""Key to its check and what it has to be, in words."""


def check_object(value: Any, schema: Schema, where: str) -> dict[str, Any]:
    """Return `value`, an object that has every key of `schema` in the right type.

    Raises:
        InputError: naming `where` and the key that is absent or wrong.
    """
    if not isinstance(value, dict):
        raise InputError(f"is a {type(value).__name__}", where=where, remedy="give an object")
    for key, (check, wanted) in schema.items():
        if key not in value:
            raise InputError(f"has no key {key!r}", where=where, remedy=f"it is {wanted}")
        if not check(value[key]):
            raise InputError(
                f"{key!r} is {_shown(value[key])}", where=where, remedy=f"give {wanted}"
            )
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
