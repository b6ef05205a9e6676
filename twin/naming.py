"""Names users type: table look-ups that answer an unknown name with the nearest known one."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from twin.errors import InputError

T = TypeVar("T")


def remedy_for(name: str, choices: Iterable[str]) -> str:
    """Return `did you mean 'x'?` for a near miss, else the list of choices."""
    known = sorted(choices)
    near = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return "choose one of " + ", ".join(known)


def lookup(table: Mapping[str, T], name: str, what: str, *, where: str = "") -> T:
    """Return `table[name]`; an unknown name is an `InputError` that suggests a known one."""
    try:
        return table[name]
    except KeyError:
        raise InputError(
            f"unknown {what} {name!r}", where=where, remedy=remedy_for(name, table)
        ) from None
