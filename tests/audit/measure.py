"""What `report.py` measures itself: whole traces, the closed-loop rows."""

import time
from typing import Any

from tests.audit import records
from tests.audit.forecasts import closed_loop
from tests.audit.whole_traces import SCENARIO, TRACE_RUNS
from twin.engine import simulate
from twin.load import load_scenario
from twin.report.metrics import summarise

KEPT = (
    "requests",
    "finished",
    "rejected",
    "unfinished",
    "steps",
    "simulated_s",
    "preemptions",
    "ttft_s",
    "prefix_cache_hit_rate",
)
"""Figures of a trace's summary that the page shows."""


def measure_traces() -> None:
    """Simulate each whole trace once and keep its figures."""
    for name, run in TRACE_RUNS.items():
        scenario = load_scenario(SCENARIO, run.overrides(records.data_folder()))
        started = time.process_time()
        result = simulate(scenario)
        seconds = time.process_time() - started
        figures: dict[str, Any] = summarise(result)
        records.write(f"trace-{name}", {"cpu_s": seconds, **{key: figures[key] for key in KEPT}})


def measure_rows() -> None:
    """Set the forecast against the closed-loop rows."""
    records.write("closed-loop", closed_loop(records.data_folder()))


SECTIONS = {"traces": measure_traces, "rows": measure_rows}
