"""`LoadPoint`: the figures of a scenario at one load."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from twin.engine.result import SimulationResult
from twin.forecast_error import ForecastError
from twin.report.metrics import summarise
from twin.report.slo import Slo
from twin.scenario import Scenario
from twin.sweep.judged import Judged, judge
from twin.sweep.waits import seats_of, waits


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """One load.

    Attributes:
        factor: times the scenario's own load.
        offered: the load, in the sweep's unit.
        requests, lost: sent in all; of these rejected, failed, timed out or unfinished.
        requests_per_s, goodput_per_s, output_tokens_per_s: finished, finished within the SLO,
            tokens of answers; None: the run has no length.
        ttft_p50_s, ttft_p99_s, itl_p50_s, itl_p99_s: None: there was none.
        slo_ttft_s, slo_tpot_s: at the SLO's percentile; None: no such limit.
        slo_attainment: share of requests within every limit.
        slo: whether the objective is met.
        kv_peak, kv_mean: share of KV blocks in use.
        preemptions: in all.
        running_max, waiting_max, waiting_mean: requests of one engine core.
        seats: most requests that an engine core may run.
        step_tokens: most tokens of a step.
        queue_grows: waiting grows to the end, so latencies depend on the run's length.
        gpu_busy_share: of the GPUs' time.
        bound: share of GPU time by what binds it.
        waits: share of serving time in which requests wait, by reason (`twin.sweep.waits`).
    """

    factor: float
    offered: float
    requests: int
    lost: int
    requests_per_s: float | None
    goodput_per_s: float | None
    output_tokens_per_s: float | None
    ttft_p50_s: float | None
    ttft_p99_s: float | None
    itl_p50_s: float | None
    itl_p99_s: float | None
    slo_ttft_s: float | None
    slo_tpot_s: float | None
    slo_attainment: float | None
    slo: Judged
    kv_peak: float | None
    kv_mean: float | None
    preemptions: int
    running_max: float | None
    waiting_max: float | None
    waiting_mean: float | None
    seats: int
    step_tokens: int
    queue_grows: bool
    gpu_busy_share: float | None
    bound: dict[str, float]
    waits: dict[str, float]

    @property
    def holds(self) -> bool:
        """Whether the load is carried: the SLO is met; where there is none, the queue ends."""
        return not self.queue_grows if self.slo_attainment is None else self.slo.met is True

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "LoadPoint":
        """Return the point in what `as_dict` gave."""
        return cls(**{**data, "slo": Judged(**data["slo"])})


def point_of(
    scenario: Scenario,
    result: SimulationResult,
    load: tuple[float, float],
    slo: Slo,
    error: ForecastError,
) -> LoadPoint:
    """Return the figures of a run.

    Args:
        scenario: what was simulated.
        result: what it gave.
        load: (factor, offered).
        slo: the limits to judge it by.
        error: of the forecast.
    """
    figures = summarise(result, slo)
    limits = figures["slo"] or {}
    kv, running, waiting = (figures[k] for k in ("kv_cache_usage", "running", "waiting"))
    return LoadPoint(
        factor=load[0],
        offered=load[1],
        requests=figures["requests"],
        lost=figures["requests"] - figures["finished"],
        requests_per_s=figures["requests_per_s"],
        goodput_per_s=figures["goodput_requests_per_s"],
        output_tokens_per_s=figures["output_tokens_per_s"],
        ttft_p50_s=figures["ttft_s"]["p50"],
        ttft_p99_s=figures["ttft_s"]["p99"],
        itl_p50_s=figures["itl_s"]["p50"],
        itl_p99_s=figures["itl_s"]["p99"],
        slo_ttft_s=limits.get("ttft_s"),
        slo_tpot_s=limits.get("tpot_s"),
        slo_attainment=figures["slo_attainment"],
        slo=judge(result, slo, error),
        kv_peak=kv["max"],
        kv_mean=kv["mean"],
        preemptions=figures["preemptions"],
        running_max=running["max"],
        waiting_max=waiting["max"],
        waiting_mean=waiting["mean"],
        seats=seats_of(scenario),
        step_tokens=scenario.policy.max_num_batched_tokens,
        queue_grows=figures["queue_grows"],
        gpu_busy_share=figures["gpu_busy_share"],
        bound={name: share or 0.0 for name, share in figures["time_by_bound"].items()},
        waits=waits(scenario, result),
    )
