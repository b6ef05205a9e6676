"""`Gain`: what one objective gains, and whether there is more to it than noise and error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from twin.report.numbers import change, percent
from twin.search.judging.error_of_difference import threshold
from twin.search.judging.paired import PairedGain, paired_gain
from twin.search.objectives import Objective

GainVerdict = Literal["gain", "loss", "none"]


@dataclass(frozen=True, slots=True)
class Gain:
    """An objective under the default and under a candidate, on traffic no trial has met.

    Attributes:
        objective: its name.
        paired: means, relative gain and its interval.
        threshold: what forecast error alone may feign.
        at_limits: relative gain of the recorded run had the SLO's limits been `tight` or
            `loose`; empty where the objective does not count by them.
        verdict: gain or loss only beyond interval, threshold and both limits.
        why: why it is none; else empty.
        values: (default, candidate) of each pair.
    """

    objective: str
    paired: PairedGain
    threshold: float
    at_limits: Mapping[str, float | None] = field(default_factory=dict)
    verdict: GainVerdict = "none"
    why: str = ""
    values: tuple[tuple[float, float], ...] = ()

    @property
    def described(self) -> str:
        """The gain and its interval in words: `23 % better (19 % to 27 %)`.

        Signs would mislead where less is better.
        """
        paired = self.paired
        if paired.relative is None:
            return "from nothing"
        if paired.low is None or paired.high is None:
            return in_words(paired.relative)
        ends = [paired.low, paired.high]
        if paired.low * paired.high > 0:
            near, far = sorted(map(abs, ends))
            return f"{in_words(paired.relative)} ({_size(near)} to {_size(far)})"
        return f"{in_words(paired.relative)} ({in_words(ends[0])} to {in_words(ends[1])})"


def in_words(relative: float) -> str:
    """Return a relative gain as `23 % better`, a loss as `4.1 % worse`."""
    if relative == 0:
        return "the same"
    return f"{_size(relative)} {'better' if relative > 0 else 'worse'}"


def _size(relative: float) -> str:
    return change(abs(100 * relative)).lstrip("+±")


def judged_gain(
    objective: Objective,
    values: Sequence[tuple[float, float]],
    changed: Iterable[str],
    *,
    experts: bool,
    at_limits: Mapping[str, float | None] | None = None,
) -> Gain:
    """Return the gain of a candidate over the default in one objective.

    Args:
        objective: which one.
        values: (default, candidate), a pair for each seed or stretch.
        changed: keys in which the two differ.
        experts: whether the network is a mixture of experts.
        at_limits: gains at other limits, of an objective that counts by the SLO.
    """
    paired = paired_gain([a for a, _ in values], [b for _, b in values], objective.direction)
    error = threshold(objective.name, changed, experts=experts)
    limits = dict(at_limits or {})
    verdict, why = _verdict(paired, error, limits, objective)
    return Gain(objective.name, paired, error, limits, verdict, why, tuple(values))


def _verdict(
    paired: PairedGain, error: float, limits: Mapping[str, float | None], objective: Objective
) -> tuple[GainVerdict, str]:
    relative = paired.relative
    if relative is None:
        if paired.b == 0:
            return "none", "both give nothing"
        return ("gain" if objective.direction == "maximize" else "loss"), ""
    if paired.low is None or paired.high is None:
        return "none", "one run says nothing of how runs vary"
    if paired.low <= 0 <= paired.high:
        return "none", "within the noise of traffic"
    if abs(relative) <= error:
        return "none", f"below the forecast error of {percent(error)}"
    sign = 1 if relative > 0 else -1
    if any(at is not None and sign * at <= 0 for at in limits.values()):
        return "none", "gone if latencies lie within their forecast error of the SLO's limits"
    return ("gain" if relative > 0 else "loss"), ""


def relative_gain(a: float, b: float, objective: Objective) -> float | None:
    """Return B's gain over A in one run each; None where A is 0."""
    if a == 0:
        return None
    return (b / a - 1) * (1 if objective.direction == "maximize" else -1)
