"""How sure a verdict is: whether an objective is kept over the whole of a forecast's error."""

from dataclasses import dataclass
from typing import Literal

from app.answers.forecast.forecast import Forecast
from twin.report.numbers import limit, percentile_name, seconds

Sureness = Literal["sure", "close", "unknown"]

_NAMES = {"ttft_s": "TTFT", "tpot_s": "TPOT"}


def sureness(found: Forecast) -> Sureness:
    """Return whether the forecast's error leaves a verdict open."""
    if not found.summary["slo"]:
        return "sure"
    if found.certainty.ttft is None:
        return "unknown"
    sides = {one.side for one in _judged(found)}
    return "close" if "across" in sides and "over" not in sides else "sure"


def sure_sentence(found: Forecast) -> str:
    """Return one sentence: `Within the forecast's error, P99 TTFT is 213 to 313 ms: …`."""
    sure, slo = found.certainty, found.summary["slo"]
    if sure.ttft is None:
        return f"How far this may be off is not known: {sure.basis}."
    if not slo:
        return f"Nine in ten such forecasts were within {100 * sure.ttft:.3g} % in mean TTFT."
    judged = _judged(found)
    if not judged:
        return "Nothing was served that the objective could be judged by."
    at = percentile_name(slo["percentile"])
    parts = [
        f"{at} {one.name} {seconds(one.low_s)} to {seconds(one.high_s)} (limit {limit(one.most_s)})"
        for one in judged
    ]
    words = _words(found, {one.side for one in judged})
    return f"Within the forecast's error: {'; '.join(parts)} – {words}."


@dataclass(frozen=True, slots=True)
class _Judged:
    name: str
    low_s: float
    high_s: float
    most_s: float

    @property
    def side(self) -> Literal["over", "under", "across"]:
        if self.low_s > self.most_s:
            return "over"
        return "under" if self.high_s <= self.most_s else "across"


def _judged(found: Forecast) -> list[_Judged]:
    """Return the limits that are set, each with the figure's range."""
    sure, slo = found.certainty, found.summary["slo"]
    errors = {"ttft_s": sure.ttft or 0.0, "tpot_s": sure.tpot or 0.0}
    return [
        _Judged(name, slo[key] / (1 + errors[key]), slo[key] * (1 + errors[key]), most)
        for key, name in _NAMES.items()
        if (most := slo[f"{key}_limit"]) is not None and slo[key] is not None
    ]


def _words(found: Forecast, sides: set[str]) -> str:
    if "over" in sides:
        return "missed throughout"
    if "across" in sides:
        return "too close to call"
    if found.summary["slo_met"] is False:
        return "those served keep it throughout, those lost break it"
    return "kept throughout"
