"""How sure a verdict is: whether an objective is kept over the whole of a forecast's error."""

from app.answers.forecast import Forecast
from twin.report.numbers import limit, percentile_name, seconds

_NAMES = {"ttft_s": "TTFT", "tpot_s": "TPOT"}


def sure_sentence(found: Forecast) -> str:
    """Return one sentence: `Within the forecast's error, P99 TTFT is 213 to 313 ms: …`."""
    sure, slo = found.certainty, found.summary["slo"]
    if sure.ttft is None:
        return f"How far this may be off is not known: {sure.basis}."
    errors = {"ttft_s": sure.ttft, "tpot_s": sure.tpot or 0.0}
    if not slo:
        return f"Nine in ten such forecasts were within {100 * sure.ttft:.3g} % in mean TTFT."
    parts: list[str] = []
    sides: set[str] = set()
    for key, name in _NAMES.items():
        most, value = slo[f"{key}_limit"], slo[key]
        if most is None or value is None:
            continue
        low, high = value / (1 + errors[key]), value * (1 + errors[key])
        sides.add("over" if low > most else "under" if high <= most else "across")
        at = percentile_name(slo["percentile"])
        parts.append(f"{at} {name} {seconds(low)} to {seconds(high)} (limit {limit(most)})")
    if not parts:
        return "Nothing was served that the objective could be judged by."
    return f"Within the forecast's error: {'; '.join(parts)} – {_words(found, sides)}."


def _words(found: Forecast, sides: set[str]) -> str:
    if "over" in sides:
        return "missed throughout"
    if "across" in sides:
        return "too close to call"
    if found.summary["slo_met"] is False:
        return "those served keep it throughout, those lost break it"
    return "kept throughout"
