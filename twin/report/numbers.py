"""Figures as a reader sees them: three significant digits, one unit, signed changes."""

import math

MISSING = "–"


def significant(value: float | None, digits: int = 3) -> str:
    """Return `value` rounded to `digits` significant digits: `12,400`, `3.14`, `0.0125`."""
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - magnitude)
    # Rounding may lift 9.996 to 10.0, which needs one decimal less.
    magnitude = math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, digits - 1 - magnitude)}f}"


def count(value: float | None) -> str:
    """Return a whole number with thousands separators."""
    return MISSING if value is None else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """Return milliseconds below 1 s, else seconds, three significant digits."""
    if value is None or not math.isfinite(value):
        return MISSING
    if abs(value) < 0.9995:
        return f"{significant(value * 1e3)} ms"
    return f"{significant(value)} s"


def limit(value: float) -> str:
    """Return a limit as it was set: `1 s`, `50 ms`, `1.25 s` (no trailing zeros)."""
    if abs(value) < 1:
        return f"{value * 1e3:.6g} ms"
    return f"{value:.6g} s"


def load(value: float | None, unit: str) -> str:
    """Return a load: `12.5` requests a second, or a whole number of clients."""
    return count(value) if unit == "clients" else significant(value)


def percent(share: float | None) -> str:
    """Return a share in [0, 1] as a percentage with three significant digits."""
    if share is None or not math.isfinite(share):
        return MISSING
    # 99.96 % must not read as 100 %: a share that is not whole never rounds up to it.
    if 0.9995 <= share < 1:
        return f"{math.floor(share * 1e4) / 100:.2f} %"
    return f"{significant(share * 100)} %"


def percentile_name(percentile: float) -> str:
    """Return `P99` or `P99.9`."""
    return f"P{percentile:g}"


def change(percent_change: float | None) -> str:
    """Return a signed percentage with an ASCII hyphen: `-18 %`, `+4.2 %`, `±0 %`."""
    if percent_change is None or not math.isfinite(percent_change):
        return MISSING
    if percent_change == 0:
        return "±0 %"
    if abs(percent_change) < 0.05:
        return f"{'+' if percent_change > 0 else '-'}<0.05 %"
    text = significant(abs(percent_change), 2)
    return f"{'+' if percent_change > 0 else '-'}{text} %"
