"""The block pool of a setup over time, what its prefix cache found and what preemptions cost."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from app.answers.forecast.certainty import Certainty
from app.answers.forecast.figures import Figure, band
from app.answers.forecast.forecast import Forecast, Progress
from app.answers.setup import Setup
from twin.engine.run import quickest_engine
from twin.report.charts.chart import Chart
from twin.report.charts.hits import hits_over_time, preemptions_over_time
from twin.report.charts.pool import pool_area, pool_map
from twin.report.numbers import count, percent, seconds
from twin.telemetry.pool.history import Loss, PoolHistory, pool_history

MOST_LISTED = 20
"""Requests in the table of those preempted most."""


@dataclass(frozen=True, slots=True)
class PoolAnswer:
    """What a run step by step says of the KV memory.

    Attributes:
        charts: `pool_map`, `pool_area`, `prefix_hits` and `preemption_cost`.
        preemptions: how many.
        recomputed_tokens, recomputed_s: what was computed twice, and GPU time of replicas for it.
        longest_stall_s: the longest that a preempted request took to be back where it had been;
            None: none came back.
        most_preempted: rows of a table, those preempted most first.
    """

    charts: dict[str, Chart]
    preemptions: int
    recomputed_tokens: int
    recomputed_s: float
    longest_stall_s: float | None
    most_preempted: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data that `pool_from` reads; rows stand in the specs alone."""
        plain = asdict(self)
        for chart in plain["charts"].values():
            chart["rows"] = []
        return plain


def pool_from(data: Mapping[str, Any]) -> PoolAnswer:
    """Return the answer in what `PoolAnswer.as_dict` gave."""
    charts = {}
    for name, chart in data["charts"].items():
        rows = chart["spec"]["data"]["values"] if chart["spec"] else []
        charts[name] = Chart(**{**chart, "rows": rows})
    return PoolAnswer(**{**data, "charts": charts})


def pool_answer(setup: Setup, progress: Progress | None = None) -> PoolAnswer:
    """Simulate a setup step by step, with an eye on its block pool.

    Args:
        setup: what is asked.
        progress: called as requests end, with (ended, expected or None).

    Raises:
        InputError: its parts do not go together.
    """
    return told(pool_history(setup.scenario(), progress, engine=quickest_engine()))


def told(history: PoolHistory | None) -> PoolAnswer:
    """Return what a history says; None: no step ran."""
    charts = (
        pool_map(history), pool_area(history), hits_over_time(history),
        preemptions_over_time(history),
    )  # fmt: skip
    losses = () if history is None else history.losses
    stalls = [loss.stalled_s for loss in losses if not math.isnan(loss.stalled_s)]
    return PoolAnswer(
        charts={chart.name: chart for chart in charts},
        preemptions=len(losses),
        recomputed_tokens=0 if history is None else history.recomputed_tokens,
        recomputed_s=0.0 if history is None else history.recomputed_s,
        longest_stall_s=max(stalls) if stalls else None,
        most_preempted=_most_preempted(losses),
    )


def _most_preempted(losses: Iterable[Loss]) -> list[dict[str, Any]]:
    by_request: dict[int, list[Loss]] = {}
    for loss in losses:
        by_request.setdefault(loss.request.index, []).append(loss)
    ranked = sorted(
        by_request.values(), key=lambda own: (-len(own), -sum(loss.recomputed_s for loss in own))
    )
    return [_row(own) for own in ranked[:MOST_LISTED]]


def _row(own: list[Loss]) -> dict[str, Any]:
    request = own[0].request
    stalls = [loss.stalled_s for loss in own if not math.isnan(loss.stalled_s)]
    return {
        "Request": request.name or str(request.index),
        "Arrival (s)": round(request.arrival_s, 3),
        "Prompt (tokens)": request.prompt_tokens,
        "Answer (tokens)": request.output_tokens,
        "Preemptions": len(own),
        "Recomputed (tokens)": sum(loss.recomputed_tokens for loss in own),
        "GPU time (ms)": round(1e3 * sum(loss.recomputed_s for loss in own), 2),
        "Longest stall (s)": round(max(stalls), 3) if stalls else None,
    }


def memory_verdict(summary: Mapping[str, Any], found: PoolAnswer | None) -> str:
    """Return how full the pool gets and what preemptions cost.

    Args:
        summary: of the forecast (`twin.report.metrics.summarise`).
        found: of the run step by step; None: it is not there yet.
    """
    peak = summary["kv_cache_usage"]["max"]
    if not summary["requests"] or not summary["steps"]:
        return "No request reached the engine in this window. Lengthen it."
    blocks = count(summary["kv_blocks"] - 1)
    whose = f" of {blocks} blocks" if summary["replicas"] == 1 else " of a replica's blocks"
    full = "KV use was not recorded" if peak is None else f"KV peaks at {percent(peak)}{whose}"
    lost = summary["preemptions"]
    if not lost:
        return f"{full}; no request is preempted."
    many = f"{count(lost)} preemption{'s' if lost > 1 else ''}"
    if found is None:
        return f"{full}; {many}."
    verb = "cost" if lost > 1 else "costs"
    return f"{full}; {many} {verb} {seconds(found.recomputed_s)} of recomputation."


def what_it_took(found: PoolAnswer) -> str:
    """Return what preemptions took, in tokens and in time that somebody waited."""
    words = f"{count(found.recomputed_tokens)} tokens were computed twice"
    if found.longest_stall_s is None:
        return f"{words}; no preempted request came back to where it had been."
    return (
        f"{words}; the longest that a preempted request took to be back where it had been: "
        f"{seconds(found.longest_stall_s)}."
    )


def memory_figures(
    now: Forecast, before: Forecast | None, found: PoolAnswer | None
) -> list[Figure]:
    """Return the figures of the memory page.

    Args:
        now: of the view.
        before: of the baseline; None: there is nothing to compare with.
        found: of the view's run step by step; None: it is not there yet.
    """
    new, old = now.summary, before.summary if before else None
    peak, hits = new["kv_cache_usage"]["max"], new["prefix_cache_hit_rate"]
    rows = [
        Figure("KV peak", percent(peak), peak, old["kv_cache_usage"]["max"] if old else None,
               "neither", 0.0, "most KV blocks in use", f"{count(new['kv_blocks'] - 1)} blocks"),
        Figure("Prefix-cache hits", percent(hits), hits,
               old["prefix_cache_hit_rate"] if old else None, "neither", 0.0,
               "prompt tokens found in the cache, of those looked up at first admission",
               "of prompt tokens"),
        Figure("Preemptions", count(new["preemptions"]), new["preemptions"],
               old["preemptions"] if old else None, "lower", None,
               "times a request lost its blocks to others",
               f"{count(new['requests'])} requests"),
    ]  # fmt: skip
    if found is not None:
        again, was = found.recomputed_s, None
        if old is not None and not old["preemptions"]:
            was = 0.0
        rows.append(
            Figure("Recomputation", seconds(again) if again else "0 s", again, was, "lower", None,
                   "GPU time for tokens that preempted requests computed a second time",
                   _band(again, now.certainty))
        )  # fmt: skip
    return rows


def recomputation_error(certainty: Certainty) -> str:
    """Return how far off the GPU time of recomputation may be, and where that comes from."""
    if certainty.tpot is None:
        return f"Error unknown: {certainty.basis}."
    return (
        f"GPU time follows from step times: P90 held-out error of mean TPOT "
        f"±{100 * certainty.tpot:.3g} %, n = {certainty.rows} ({certainty.basis})."
    )


def _band(again_s: float, certainty: Certainty) -> str:
    """Return how far off it may be: it follows from step times, as TPOT does."""
    if not again_s:
        return "nothing was lost"
    return band(again_s, certainty.tpot)
