"""The files of a run, all of them or none."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twin.engine.result import SimulationResult
from twin.files import whole_directory, write_text
from twin.report.html import html_report, scenario_yaml
from twin.telemetry.perfetto import write_trace
from twin.telemetry.prometheus import prometheus_text

FILES = (
    "summary.json",
    "requests.parquet",
    "steps.parquet",
    "report.html",
    "trace.json.gz",
    "metrics.prom",
    "scenario.yaml",
)
"""What `write_outputs` writes, in the order it returns them."""


def write_outputs(
    result: SimulationResult, summary: Mapping[str, Any], directory: str | Path
) -> list[Path]:
    """Write every file of a run into `directory` and return their paths.

    They are made in a folder beside it and moved in when all of them are done. In a folder that
    exists, only namesakes are replaced.

    Args:
        result: what the run gave.
        summary: its figures, from `summarise`; written as they are.
        directory: where to; made if it does not exist.

    Raises:
        InputError: `directory` is a file, or cannot be written.
    """
    with whole_directory(directory) as folder:
        write_text(folder / "summary.json", summary_json(result, summary))
        result.to_parquet(str(folder))
        write_text(folder / "report.html", html_report(result, summary))
        write_trace(result, folder / "trace.json.gz")
        write_text(folder / "metrics.prom", prometheus_text(result))
        write_text(folder / "scenario.yaml", scenario_yaml(result.inputs))
    return [Path(directory) / name for name in FILES]


def summary_json(result: SimulationResult, summary: Mapping[str, Any]) -> str:
    """Return the figures, then `notes` and `inputs`, as JSON (what `compare.as_side` reads)."""
    data = {**summary, "notes": list(result.notes), "inputs": result.inputs}
    return json.dumps(data, indent=2, default=str, allow_nan=False) + "\n"
