"""Checked values out of a record."""

import math
import re
from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.workload.limits import MAX_TOKENS

MAX_TIMESTAMP = 1e13
"""Seconds or milliseconds: milliseconds since 1970 are below 2e12."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_SHOWN_CHARACTERS = 40
_LABEL_CHARACTERS = 256


def shown(value: object) -> str:
    """Return `repr(value)`, cut to a length fit for a message."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = "a huge integer"
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def label(value: object) -> str:
    """Return a client's own id as text that every output file can hold."""
    return str(value)[:_LABEL_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def place(path: Path, row: int) -> str:
    """Return `file, row 18`."""
    return f"{path}, row {row}"


def token_count(value: object, column: str, path: Path, row: int) -> int:
    """Return a length in tokens, 1 to `MAX_TOKENS`; text and whole floats are accepted.

    Raises:
        InputError: anything else, naming file, row and column.
    """
    if type(value) is int and 0 < value <= MAX_TOKENS:
        return value
    where = place(path, row)
    remedy = f"a whole number of tokens from 1 to {MAX_TOKENS:,}"
    number = _number(value)
    if number is None or not math.isfinite(number):
        raise InputError(f"{column} {shown(value)} is not a number", where=where, remedy=remedy)
    if number != math.floor(number):
        raise InputError(f"{column} {shown(value)} is not whole", where=where, remedy=remedy)
    if not 0 < number <= MAX_TOKENS:
        problem = "is not positive" if number <= 0 else "is too large"
        raise InputError(f"{column} {shown(value)} {problem}", where=where, remedy=remedy)
    return int(number)


def timestamp(value: object, column: str, path: Path, row: int) -> float:
    """Return a finite time that is not negative, in the file's unit.

    Raises:
        InputError: anything else, naming file, row and column.
    """
    number = None if isinstance(value, str) else _number(value)
    if number is None or not math.isfinite(number) or not 0 <= number <= MAX_TIMESTAMP:
        raise InputError(
            f"{column} {shown(value)} is not a time",
            where=place(path, row),
            remedy=f"a number from 0 to {MAX_TIMESTAMP:.0e}",
        )
    return number


def required(record: dict[str, Any], key: str, path: Path, row: int) -> Any:
    """Return `record[key]`.

    Raises:
        InputError: it is missing.
    """
    try:
        return record[key]
    except KeyError:
        keys = ", ".join(shown(name) for name in list(record)[:8]) or "nothing"
        raise InputError(
            f"{key!r} is missing", where=place(path, row), remedy=f"the row has {keys}"
        ) from None


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value.strip()) else None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return None
