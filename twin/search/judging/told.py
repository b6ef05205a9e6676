"""Candidates, values and gains as text."""

from collections.abc import Mapping

from twin.report.numbers import change, percent, seconds, significant
from twin.search.judging.gains import Gain
from twin.search.knob import Value
from twin.search.objectives import OBJECTIVES, Objective

CONSTRAINTS = {
    "ttft_s": "the SLO's TTFT limit",
    "tpot_s": "the SLO's TPOT limit",
    "unserved": "the share of requests that may go unanswered",
}
"""How reports call constraints."""


def title_of(objective: str) -> str:
    """Return how reports call an objective."""
    return OBJECTIVES[objective].title


def told_gain(gain: Gain) -> str:
    """Return `goodput per GPU-hour 2.1 % better (1.2 % to 3 %)`."""
    return f"{title_of(gain.objective)} {gain.described}"


def told_alike(objective: Objective, spread: float) -> str:
    """Return that trials are alike in an objective, so that no knob matters for it."""
    if spread == 0:
        return f"No knob matters for {objective.title}: all trials are equal in it."
    return (
        f"No knob matters for {objective.title}: all trials lie within {percent(spread)} of each "
        "other, less than forecast error."
    )


def told(candidate: Mapping[str, Value]) -> str:
    """Return a candidate in a line: `policy.block_size=32, …`, or `the default`."""
    parts = [f"{key}={value_text(value)}" for key, value in candidate.items()]
    return ", ".join(parts) or "the default"


def value_text(value: Value) -> str:
    """Return a knob's value as a scenario file writes it."""
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def objective_text(value: float | None, unit: str) -> str:
    """Return an objective's value with its unit."""
    if unit == "s":
        return seconds(value)
    return f"{significant(value)} {unit}"


def relative_text(value: float | None) -> str:
    """Return a relative gain as a signed percentage."""
    return "–" if value is None else change(100 * value)


def capitalised(text: str) -> str:
    """Return a text whose first letter is a capital, the rest as it is."""
    return text[:1].upper() + text[1:]
