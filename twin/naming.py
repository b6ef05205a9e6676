"""Names users type: table look-ups that answer an unknown name with the nearest known one."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from twin.errors import InputError

T = TypeVar("T")


def remedy_for(name: str, choices: Iterable[str]) -> str:
    """Return `did you mean 'x'?` for a near miss, else the list of choices."""
    known = sorted(choices)
    # `A100-80GB` means a100_sxm: the first word decides where nothing is close as a whole.
    word = re.split(r"[^a-z0-9.]+", str(name).lower())[0]
    near = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.6)
    same_start = [choice for choice in known if len(word) > 1 and choice.startswith(word)]
    if not near and len(same_start) == 1:
        near = same_start
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
