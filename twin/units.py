"""Quantities in and out of text: `80GiB` to bytes, seconds to `12.3 ms`."""

import math
import re

from twin.errors import InputError

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

_BYTE_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB,
}  # fmt: skip
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(text: str | int | float, *, where: str = "") -> int:
    """Return the number of bytes in `80GiB`, `512 MB` or a plain number."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        if not math.isfinite(text) or text < 0:
            raise InputError(f"{text!r} is not a size in bytes", where=where)
        return int(text)
    match = _QUANTITY.fullmatch(str(text))
    unit = _BYTE_UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None or not math.isfinite(float(match.group(1)) * unit):
        raise InputError(
            f"{text!r} is not a size in bytes", where=where, remedy="write for example 80GiB"
        )
    return int(float(match.group(1)) * unit)


def format_seconds(seconds: float | None) -> str:
    """Three significant digits: microseconds, milliseconds below 1 s, else seconds."""
    if seconds is None or math.isnan(seconds):
        return "–"
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if abs(seconds) < limit:
            return f"{_three(seconds * factor)} {unit}"
    return f"{_three(seconds)} s"


def format_bytes(num_bytes: float) -> str:
    """GiB with two decimals; smaller sizes in MiB or KiB."""
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(num_bytes) >= size:
            return f"{num_bytes / size:,.2f} {unit}"
    return f"{num_bytes:.0f} B"


def _three(value: float) -> str:
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"
