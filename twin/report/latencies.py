"""Latencies of each request, percentiles of any latency, and cumulative distributions."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twin.engine.result import FINISHED, TIMED_OUT, Floats, RequestTable, SimulationResult

PERCENTILES = (50, 90, 95, 99)
"""The percentiles every latency is summarised by."""

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RequestLatencies:
    """Seconds, one value a request, NaN where it does not exist.

    Attributes:
        ttft_s: arrival to first token.
        tpot_s: mean gap between tokens after the first; NaN for answers of one token.
        e2e_s: arrival to last token.
        queue_s: arrival to first scheduling.
    """

    ttft_s: Floats
    tpot_s: Floats
    e2e_s: Floats
    queue_s: Floats


def request_latencies(requests: RequestTable) -> RequestLatencies:
    """Return the latencies of every request; TPOT and E2E only of those that finished."""
    finished = requests.outcome == FINISHED
    nan = np.full(len(requests), np.nan)
    gaps = requests.output_tokens - 1
    several = finished & (gaps > 0)
    tpot = nan.copy()
    decode = requests.finish_s[several] - requests.first_token_s[several]
    tpot[several] = decode / gaps[several]
    # What came after its client had gone was seen by nobody.
    gone_s = np.where(requests.outcome == TIMED_OUT, requests.finish_s, np.inf)

    def since_arrival(at_s: Floats) -> Floats:
        return np.where(at_s > gone_s, np.nan, at_s - requests.arrival_s)

    return RequestLatencies(
        ttft_s=since_arrival(requests.first_token_s),
        tpot_s=tpot,
        e2e_s=np.where(finished, requests.finish_s - requests.arrival_s, nan),
        queue_s=since_arrival(requests.scheduled_s),
    )


def measured(result: SimulationResult) -> Bools:
    """Return which rows count in latency figures: all but those of the first requests, warm-up."""
    requests = result.requests
    number = np.cumsum(requests.attempt == 1) - 1  # of requests, whatever attempts lie between
    counts: Bools = number[requests.origin] >= warmup_requests(result)
    return counts


def warmup_requests(result: SimulationResult) -> int:
    """Return how many first requests the scenario calls warm-up."""
    return max(0, int(result.inputs.get("warmup_requests") or 0))


def percentiles(values: Floats) -> dict[str, float | None]:
    """Return `{mean, p50, p90, p95, p99}` of the finite values; all None when there are none.

    Percentiles are NumPy's linear ones (Hyndman and Fan, type 7), as in vLLM's own benchmark.
    """
    finite = values[np.isfinite(values)]
    names = [f"p{q}" for q in PERCENTILES]
    if not finite.size:
        return dict.fromkeys(["mean", *names])
    at = np.percentile(finite, PERCENTILES)
    return {"mean": float(finite.mean()), **dict(zip(names, map(float, at), strict=True))}


def percentile_of(values: Floats, percentile: float) -> float | None:
    """Return one percentile of the finite values, None when there are none."""
    finite = values[np.isfinite(values)]
    return float(np.percentile(finite, percentile)) if finite.size else None


def cdf(values: Floats, points: int = 400, *, tail: int = 10) -> tuple[Floats, Floats]:
    """Return (x, p): at most `points` quantiles of the finite values, p from 0 up.

    Points lie evenly in -log10(1 - p), so the tail is as finely drawn as the body. The curve
    stops where fewer than `tail` values remain above it, but never below the median.
    """
    finite = np.sort(values[np.isfinite(values)])
    if not finite.size:
        return np.empty(0), np.empty(0)
    top = max(0.5, 1.0 - tail / finite.size)
    p = 1.0 - np.power(10.0, -np.linspace(0.0, -math.log10(1.0 - top), max(2, points)))
    position = p * (finite.size - 1)
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, finite.size - 1)
    return finite[low] + (finite[high] - finite[low]) * (position - low), p
