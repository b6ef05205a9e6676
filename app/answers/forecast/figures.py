"""The figures of a forecast as cards show them: value, band, baseline, error of the difference."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.answers.forecast.certainty import error_between
from app.answers.forecast.forecast import Forecast
from twin.report.numbers import percent, seconds, significant

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a forecast, and of the baseline's.

    Attributes:
        title: its name.
        value: as shown.
        now, before: of the view and of the baseline; None: not known.
        better: which way is better.
        error: relative error of the ratio of two forecasts; None: not known.
        about: what it is.
        band: in words, how far off it may be; shown where there is nothing to compare with.
    """

    title: str
    value: str
    now: float | None
    before: float | None
    better: Better
    error: float | None
    about: str = ""
    band: str = ""


def figures_of(
    now: Forecast, before: Forecast | None, usd_per_gpu_hour: float | None
) -> list[Figure]:
    """Return the eight figures of the forecast page.

    Args:
        now: of the view.
        before: of the baseline; None: there is nothing to compare with.
        usd_per_gpu_hour: what a GPU costs; None: cost is told in GPU-hours.
    """
    first, step = _errors(now, before)
    old: Mapping[str, Any] | None = before.summary if before else None
    new, sure = now.summary, now.certainty
    rows = [
        Figure(
            f"{title} {at.upper()}",
            seconds(new[key][at]),
            new[key][at],
            old[key][at] if old else None,
            "lower",
            wrong,
            about,
            band(new[key][at], own),
        )
        for key, title, wrong, own, about in (
            ("ttft_s", "TTFT", first, sure.ttft, "time to first token"),
            ("itl_s", "ITL", step, sure.tpot, "gap between two tokens of an answer"),
        )
        for at in ("p50", "p99")
    ]
    rows += [
        _rate(new, old, "output_tokens_per_s", "Throughput", "tok/s", step),
        _rate(new, old, "goodput_requests_per_s", "Goodput", "req/s", step),
        _kv(new, old),
        _cost(now, before, usd_per_gpu_hour, step),
    ]
    return rows


def _errors(now: Forecast, before: Forecast | None) -> tuple[float | None, float | None]:
    """Return the P90 errors of a ratio, for first tokens and for steps; None: not known."""
    if before is None or now.certainty.ttft is None or before.certainty.ttft is None:
        return None, None
    experts = now.certainty.experts or before.certainty.experts
    error = error_between(before.inputs, now.inputs, experts=experts)
    return error.ttft_p90, error.tpot_p90


def band(value: float | None, error: float | None) -> str:
    """Return in words how far off a duration may be.

    Args:
        value: seconds; None: there is none.
        error: relative; None: not known.
    """
    if value is None:
        return ""
    if error is None:
        return "error unknown"
    return f"{seconds(value / (1 + error))} to {seconds(value * (1 + error))}"


_RATES: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "Throughput": (
        "output tokens of finished answers",
        lambda new: f"{significant(new['requests_per_s'])} req/s",
    ),
    "Goodput": (
        "requests within the SLO; all that finish where none is set",
        lambda new: f"{percent(new['slo_attainment'])} of requests",
    ),
}
"""What a rate counts, and what is told beside it."""


def _rate(
    new: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    key: str,
    title: str,
    unit: str,
    error: float | None,
) -> Figure:
    about, more = _RATES[title]
    text, was = f"{significant(new[key])} {unit}", old[key] if old else None
    return Figure(title, text, new[key], was, "higher", error, about, more(new))


def _kv(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Figure:
    peak = new["kv_cache_usage"]["max"]
    was = old["kv_cache_usage"]["max"] if old else None
    preempted = f"{new['preemptions']:,} preemptions"
    return Figure(
        "KV peak", percent(peak), peak, was, "neither", 0.0, "most KV blocks in use", preempted
    )


def _cost(
    now: Forecast, before: Forecast | None, usd_per_gpu_hour: float | None, error: float | None
) -> Figure:
    hours = now.gpu_hours_per_mtok
    was = before.gpu_hours_per_mtok if before else None
    about = "of a million output tokens of finished answers"
    gpus = f"{significant(now.gpus, 2)} GPUs" if now.gpus != 1 else "1 GPU"
    if usd_per_gpu_hour is None or hours is None:
        text = significant(hours)
        return Figure(
            "GPU-h per M tokens", text, hours, was, "lower", error, f"GPU-hours {about}", gpus
        )
    text = f"${significant(hours * usd_per_gpu_hour)}"
    return Figure("Cost per M tokens", text, hours, was, "lower", error, f"dollars {about}", gpus)
