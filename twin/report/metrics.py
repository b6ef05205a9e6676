"""`summarise`: the figures of a run as plain, JSON-ready data."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from twin.engine.result import (
    BOUNDS,
    FAILED,
    FINISHED,
    REJECTED,
    TIMED_OUT,
    UNFINISHED,
    Floats,
    SimulationResult,
)
from twin.report.clients import client_figures
from twin.report.cluster import cluster_figures, core_seconds
from twin.report.latencies import (
    Bools,
    RequestLatencies,
    measured,
    percentile_of,
    percentiles,
    request_latencies,
    warmup_requests,
)
from twin.report.occupancy import Span, hold_seconds, serving_span, time_mean
from twin.report.slo import Slo, SloLike, read_slo

SUMMARY_SCHEMA_VERSION = 1

# Larger than any latency, small enough to interpolate with: a failed request's place in a
# percentile is above every limit, yet inf would turn linear interpolation into NaN.
_NEVER_S = 1e30


def summarise(
    result: SimulationResult, slo: Mapping[str, Any] | SloLike | None = None
) -> dict[str, Any]:
    """Return the figures of a run: JSON-ready, keys in a fixed order, None instead of NaN.

    Args:
        result: what the run gave.
        slo: `{ttft_s, tpot_s, percentile}`; None takes the one in `result.inputs`.

    Latencies are seconds, shares lie in [0, 1]. Warm-up requests (`warmup_requests` in the
    inputs) are left out of request latencies and of the SLO's figures, not of rates and not of
    ITL, whose gaps carry no request. Rates count finished requests over first arrival to last
    finish. KV usage, running and waiting are means over that time and over replicas, idle time
    counting as 0; their maxima are those of any one replica.

    Raises:
        InputError: the objective is not one.
    """
    objective = read_slo(result.inputs.get("slo") if slo is None else slo)
    latencies = request_latencies(result.requests)
    counted = measured(result)
    span = serving_span(result)
    clients = client_figures(result)
    return {
        "schema_version": SUMMARY_SCHEMA_VERSION,
        **_counts(result),
        **({} if clients is None else {"clients": clients}),
        **_latency_figures(result, latencies, counted),
        **_rates(result, latencies, objective, span),
        **_slo_figures(result, latencies, objective, counted),
        **_cache_figures(result, span),
        **_step_figures(result, span),
        "queue_grows": queue_grows(result, latencies),
    }


def _counts(result: SimulationResult) -> dict[str, Any]:
    outcomes = np.bincount(result.requests.outcome, minlength=4)
    return {
        "requests": len(result.requests),
        "finished": int(outcomes[FINISHED]),
        "rejected": int(outcomes[REJECTED]),
        "unfinished": int(outcomes[UNFINISHED]),
        "failed": int(outcomes[FAILED]),
        "requeues": int(result.requests.requeues.sum()),
        "warmup_requests": min(len(result.requests), warmup_requests(result)),
        "replicas": int(result.replicas),
        "steps": int(result.steps_taken),
        "simulated_s": float(result.simulated_s),
        "gpu_s": result.gpu_s,
        "cluster": cluster_figures(result),
    }


def _latency_figures(
    result: SimulationResult, latencies: RequestLatencies, counted: Bools
) -> dict[str, Any]:
    return {
        "ttft_s": percentiles(latencies.ttft_s[counted]),
        "tpot_s": percentiles(latencies.tpot_s[counted]),
        "itl_s": percentiles(result.itl_s),
        "e2e_s": percentiles(latencies.e2e_s[counted]),
        "queue_s": percentiles(latencies.queue_s[counted]),
    }


def _rates(
    result: SimulationResult, latencies: RequestLatencies, slo: Slo, span: Span
) -> dict[str, Any]:
    finished = result.requests.outcome == FINISHED
    totals = {
        "requests_per_s": finished.sum(),
        "input_tokens_per_s": result.requests.prompt_tokens[finished].sum(),
        "output_tokens_per_s": result.requests.output_tokens[finished].sum(),
        "goodput_requests_per_s": good(result, latencies, slo).sum(),
    }
    return {
        name: float(total) / span.seconds if span.seconds > 0 else None
        for name, total in totals.items()
    }


def good(result: SimulationResult, latencies: RequestLatencies, slo: Slo) -> Bools:
    """Return which requests finished within every limit that is set.

    An answer of one token has no TPOT and meets that limit.
    """
    meets: Bools = result.requests.outcome == FINISHED
    if slo.ttft_s is not None:
        meets &= latencies.ttft_s <= slo.ttft_s
    if slo.tpot_s is not None:
        meets &= ~(latencies.tpot_s > slo.tpot_s)
    return meets


def _slo_figures(
    result: SimulationResult, latencies: RequestLatencies, slo: Slo, counted: Bools
) -> dict[str, Any]:
    if not slo.asked or not counted.any():
        return {"slo_attainment": None, "slo_met": None, "slo": None}
    limits = {"ttft_s": slo.ttft_s, "tpot_s": slo.tpot_s}
    judged = _judged(result, latencies, slo)
    detail: dict[str, Any] = {"percentile": slo.percentile}
    met: bool | None = None
    for name, limit_s in limits.items():
        values = getattr(latencies, name)[counted]
        detail[name] = None
        detail[f"{name}_limit"] = limit_s
        if limit_s is None:
            continue
        detail[name] = percentile_of(values, slo.percentile)
        worst = percentile_of(judged[name][counted], slo.percentile)
        if worst is not None:
            met = worst <= limit_s and met is not False
    return {
        "slo_attainment": float(good(result, latencies, slo)[counted].mean()),
        "slo_met": met,
        "slo": detail,
    }


def slo_met(result: SimulationResult, slo: Slo) -> bool | None:
    """Return whether a run met an objective; None: none is asked for, or nobody can tell."""
    latencies = request_latencies(result.requests)
    met: bool | None = _slo_figures(result, latencies, slo, measured(result))["slo_met"]
    return met


def _judged(result: SimulationResult, latencies: RequestLatencies, slo: Slo) -> dict[str, Floats]:
    """Latencies as the objective sees them: a request that failed it for certain never ends.

    Those rejected, lost or given up fail both limits. One still without a token at the end of the
    run fails the TTFT limit once it has waited longer than that; before, nobody knows, and it is
    left out.
    """
    requests = result.requests
    lost = np.isin(requests.outcome, (REJECTED, FAILED, TIMED_OUT))
    late = lost.copy()
    if slo.ttft_s is not None:
        silent = (requests.outcome == UNFINISHED) & np.isnan(requests.first_token_s)
        late |= silent & (result.simulated_s - requests.arrival_s > slo.ttft_s)
    return {
        "ttft_s": np.where(late, _NEVER_S, latencies.ttft_s),
        "tpot_s": np.where(lost, _NEVER_S, latencies.tpot_s),
    }


def _cache_figures(result: SimulationResult, span: Span) -> dict[str, Any]:
    steps, prefix = result.steps, result.prefix
    hold, over_s = hold_seconds(result, span), core_seconds(result, span)
    used, all_of_it = result.kv_in_use

    def state(values: Any, scale: float) -> dict[str, float | None]:
        if not result.stride:  # nothing was recorded
            return {"mean": None, "max": None}
        mean = time_mean(values, hold, over_s)
        return {
            "mean": None if mean is None else mean * scale,
            "max": float(values.max()) * scale if values.size else 0.0,
        }

    per_block = 1.0 / all_of_it if all_of_it > 0 else 0.0
    return {
        "preemptions": int(result.requests.preemptions.sum()),
        "prefix_cache_hit_rate": prefix.hits / prefix.queries if prefix.queries else 0.0,
        "kv_blocks": int(result.kv_blocks),
        "block_size": int(result.block_size),
        "kv_cache_usage": state(used, per_block),
        "running": state(steps.running, 1.0),
        "waiting": state(steps.waiting, 1.0),
    }


def _step_figures(result: SimulationResult, span: Span) -> dict[str, Any]:
    steps = result.steps
    by_bound = np.bincount(steps.bound, weights=steps.busy_s, minlength=len(BOUNDS))
    named = {name: float(s) for name, s in zip(BOUNDS, by_bound, strict=True) if name != "idle"}
    whole = result.stride == 1
    total = sum(named.values()) if whole else sum(result.time_by_source_s.values())
    capacity_s = core_seconds(result, span)
    return {
        "gpu_busy_share": min(1.0, total / capacity_s) if capacity_s > 0 else None,
        "step_s": percentiles(steps.end_s - steps.start_s),
        "time_by_bound": shares(named) if result.stride else dict.fromkeys(named),
        "time_by_source": shares(result.time_by_source_s),
    }


def shares(parts: Mapping[str, float]) -> dict[str, float]:
    """Return each part's share of the sum; all 0 when the sum is."""
    total = sum(parts.values())
    return {name: part / total if total > 0 else 0.0 for name, part in parts.items()}


def queue_grows(result: SimulationResult, latencies: RequestLatencies) -> bool:
    """Whether waiting keeps growing to the end: arrivals outpace the service.

    Judged by the median queue time of the last tenth of the arrivals against the first tenth's;
    too few requests (below 50) never say so. Then every latency depends on the run's length.
    """
    requests = result.requests
    order = np.argsort(requests.arrival_s, kind="stable")
    waits, tenth = latencies.queue_s[order], order.size // 10
    if tenth < 5:
        return False
    # A burst that all comes at once queues too, and is no rate of arrivals.
    first_finish_s = np.min(requests.finish_s, initial=np.inf, where=requests.outcome == FINISHED)
    if requests.arrival_s[order[-tenth]] <= first_finish_s:
        return False
    early, late = np.nan_to_num(waits[:tenth]), np.nan_to_num(waits[-tenth:])
    return bool(np.median(late) > 5 * np.median(early) + 0.5)
