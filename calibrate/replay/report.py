"""A replay on screen and as JSON."""

from typing import Any

from rich.console import Console
from rich.table import Table

from calibrate.replay.replay import (
    METRICS,
    STATISTICS,
    Outcome,
    Replay,
    error_pct,
    request_error_pct,
    statistics,
)
from calibrate.replay.run_folder import Latencies
from twin.units import format_seconds


def as_json(replay: Replay) -> dict[str, Any]:
    """Return plain data; `error_pct` is that of the logged block count if there is one."""
    measured, main = replay.run.measured, replay.main
    data: dict[str, Any] = {
        "run": replay.run.path.name,
        "requests": int(measured.ttft.size),
        "kv_blocks": {"logged": replay.run.logged_blocks, "computed": replay.computed.blocks},
        "kv_blocks_used": main.blocks,
        "error_pct": error_pct(main.predicted, measured),
        "request_error_pct": request_error_pct(main.predicted, measured),
        "predicted_s": _statistics(main.predicted),
        "measured_s": _statistics(measured),
        "preemptions": main.preemptions,
    }
    if replay.logged is not None:
        computed = replay.computed.predicted
        data["error_pct_computed_blocks"] = error_pct(computed, measured)
        data["request_error_pct_computed_blocks"] = request_error_pct(computed, measured)
    return data


def print_replay(replay: Replay, console: Console) -> None:
    """Print a table for each block count."""
    run, logged = replay.run, replay.run.logged_blocks
    console.print(
        f"{run.path.name}: {run.measured.ttft.size} requests, vLLM {run.vllm_version}; KV blocks "
        f"logged {logged if logged is not None else 'none'}, computed {replay.computed.blocks}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if replay.logged is not None:
        agree = replay.logged.blocks == replay.computed.blocks
        count = "logged blocks, as many as computed" if agree else "logged blocks"
        console.print(_table(f"with the {replay.logged.blocks} {count}", replay.logged, run))
        if agree:
            return
    title = f"with the {replay.computed.blocks} computed blocks"
    console.print(_table(title, replay.computed, run))


def _statistics(latencies: Latencies) -> dict[str, dict[str, float]]:
    return {metric: statistics(getattr(latencies, metric)) for metric in METRICS}


def _table(title: str, outcome: Outcome, run: Any) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for statistic in STATISTICS:
        table.add_column(statistic, justify="right")
    table.add_column("a request", justify="right")
    errors = error_pct(outcome.predicted, run.measured)
    single = request_error_pct(outcome.predicted, run.measured)
    for metric in METRICS:
        ours = statistics(getattr(outcome.predicted, metric))
        theirs = statistics(getattr(run.measured, metric))
        for label, values in (("measured", theirs), ("predicted", ours)):
            cells = [format_seconds(values[name]) for name in STATISTICS]
            table.add_row(f"{metric.upper()} {label}", *cells, "")
        cells = [f"{errors[metric][name]:+.2f} %" for name in STATISTICS]
        table.add_row("  error", *cells, f"{single[metric]:.2f} %", end_section=True)
    return table
