"""`load_limit`: up to which load the SLO is met, and how far the forecast's error moves that."""

from dataclasses import dataclass

from twin.report.numbers import load, percent
from twin.sweep.point import LoadPoint
from twin.sweep.sweep import LoadSweep, edge


@dataclass(frozen=True, slots=True)
class LoadLimit:
    """The highest load that holds lies between two loads.

    Attributes:
        low: the last load that holds; None: the lowest does not.
        high: the first that does not; None: the highest does.
        error_low: the last that also holds if latencies are longer by the forecast's error;
            None: the lowest does not, or there is no SLO.
        error_high: the first that does not hold even if they are shorter by it; None: the
            highest does, or there is no SLO.
        sentence: for a reader.
    """

    low: float | None
    high: float | None
    error_low: float | None
    error_high: float | None
    sentence: str


def load_limit(sweep: LoadSweep) -> LoadLimit:
    """Return up to which load the SLO is met; without one, up to which the queue does not grow."""
    good, bad = edge(sweep.points)
    low, high = _offered(good), _offered(bad)
    error_low, error_high = _within_error(sweep)
    words = f"{_words(sweep, low, high)}{_error_words(sweep, error_low, error_high)}."
    return LoadLimit(low, high, error_low, error_high, words)


def _offered(point: LoadPoint | None) -> float | None:
    return None if point is None else point.offered


def _within_error(sweep: LoadSweep) -> tuple[float | None, float | None]:
    if not sweep.slo.asked:
        return None, None
    surely = None
    for point in sweep.points:
        if point.slo.met_if_slower is not True:
            break
        surely = point.offered
    never = next((p.offered for p in sweep.points if p.slo.met_if_faster is not True), None)
    return surely, never


def _words(sweep: LoadSweep, low: float | None, high: float | None) -> str:
    unit = sweep.unit
    if sweep.slo.asked:
        holds, fails = "Meets the SLO", "Misses the SLO"
    else:
        holds, fails = "Keeps up with the load", "The queue grows"
    if low is None:
        return f"{fails} already at {load(high, unit)} {unit}, the lowest load"
    if high is None:
        return f"{holds} at every load up to {load(low, unit)} {unit}"
    return f"{holds} up to {interval(low, high, unit)} {unit}"


def _error_words(sweep: LoadSweep, low: float | None, high: float | None) -> str:
    if not sweep.slo.asked:
        return "" if sweep.points else "no load was simulated"
    if low is None and high is None:
        return "; within the forecast's error it may hold at no load or at all of them"
    if low is None:
        span = f"it may miss at every load, and does from {load(high, sweep.unit)} {sweep.unit} on"
    elif high is None:
        span = f"it holds up to {load(low, sweep.unit)} {sweep.unit} at least"
    else:
        span = f"up to {interval(low, high, sweep.unit)} {sweep.unit}"
    return f"; within the forecast's error {span} ({error_words(sweep)})"


def error_words(sweep: LoadSweep) -> str:
    """Return the error that a band is made of: `P90 held-out error: TTFT ±21.5 %`."""
    parts = [
        f"{title} ±{percent(error)}"
        for title, error, limit_s in (
            ("TTFT", sweep.error.ttft_p90, sweep.slo.ttft_s),
            ("TPOT", sweep.error.tpot_p90, sweep.slo.tpot_s),
        )
        if limit_s is not None or not sweep.slo.asked
    ]
    return f"P90 held-out error: {', '.join(parts)}, n = {sweep.error.rows}"


def interval(low: float, high: float, unit: str) -> str:
    """Return `13–15`, or one number where both read alike."""
    first, last = load(low, unit), load(high, unit)
    return first if first == last else f"{first}–{last}"
