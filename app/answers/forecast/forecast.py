"""The forecast of a setup: figures, curves and timelines, ready to be drawn."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from app.answers.forecast.certainty import Certainty, certainty_of
from app.answers.setup import Setup
from twin.engine.result import FINISHED, SimulationResult
from twin.engine.run import quickest_engine, simulate
from twin.report.charts.arrivals import ttft_over_time
from twin.report.charts.chart import Chart
from twin.report.charts.latency import Curve, curve_of
from twin.report.charts.timelines import kv_over_time, queue_over_time, steps_over_time
from twin.report.latencies import measured, request_latencies
from twin.report.metrics import summarise
from twin.report.slo import read_slo
from twin.scenario import Scenario

Progress = Callable[[int, int | None], None]

CURVES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "itl_s": "ITL"}
"""Latencies that are drawn as curves, and their names."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one simulation says.

    Attributes:
        summary: its figures (`twin.report.metrics.summarise`).
        inputs, notes: the scenario as simulated, and caveats.
        curves: of `CURVES`, by key.
        charts: over time, by name: `ttft_time`, `kv`, `queue`, `steps`.
        gpus: GPUs that were paid for, on average.
        gpu_hours_per_mtok: GPU-hours a million output tokens; None: there were none.
        certainty: how far such forecasts are off.
        cpu_s: seconds of one core that the simulation took; what loading code took is in it.
    """

    summary: dict[str, Any]
    inputs: dict[str, Any]
    notes: list[str]
    curves: dict[str, Curve]
    charts: dict[str, Chart]
    gpus: float
    gpu_hours_per_mtok: float | None
    certainty: Certainty
    cpu_s: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain data that `forecast_from` reads."""
        return asdict(self)


def forecast_from(data: Mapping[str, Any]) -> Forecast:
    """Return the forecast in what `Forecast.as_dict` gave."""
    plain = dict(data)
    plain["curves"] = {
        key: Curve(tuple(c["x_s"]), tuple(c["share"]), c["p50_s"], c["p99_s"])
        for key, c in data["curves"].items()
    }
    plain["charts"] = {key: Chart(**chart) for key, chart in data["charts"].items()}
    plain["certainty"] = Certainty(**data["certainty"])
    return Forecast(**plain)


def forecast(setup: Setup, progress: Progress | None = None) -> Forecast:
    """Simulate a setup.

    Args:
        setup: what is asked.
        progress: called as requests end, with (ended, expected or None).

    Raises:
        InputError: its parts do not go together.
    """
    scenario = setup.scenario()
    started_s = time.thread_time()
    result = simulate(scenario, progress, engine=quickest_engine())
    return drawn(scenario, result, time.thread_time() - started_s)


def drawn(scenario: Scenario, result: SimulationResult, cpu_s: float = 0.0) -> Forecast:
    """Return the forecast that a result makes."""
    slo = read_slo(result.inputs.get("slo"))
    latencies, counted = request_latencies(result.requests), measured(result)
    values = {
        "ttft_s": latencies.ttft_s[counted],
        "tpot_s": latencies.tpot_s[counted],
        "itl_s": result.itl_s,
    }
    charts = (
        ttft_over_time(result, slo_s=slo.ttft_s),
        kv_over_time(result),
        queue_over_time(result),
        steps_over_time(result),
    )
    finished = result.requests.outcome == FINISHED
    gpu_s = result.gpu_s or 0.0
    tokens = int(result.requests.output_tokens[finished].sum())
    return Forecast(
        summary=summarise(result),
        inputs=result.inputs,
        notes=list(result.notes),
        curves={key: curve_of(one) for key, one in values.items()},
        charts={chart.name: chart for chart in charts},
        gpus=gpu_s / result.simulated_s if result.simulated_s > 0 else 0.0,
        gpu_hours_per_mtok=gpu_s / 3600 / (tokens / 1e6) if tokens else None,
        certainty=certainty_of(scenario),
        cpu_s=cpu_s,
    )
