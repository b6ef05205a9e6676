"""The files of a search, all of them or none."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from twin.files import whole_directory, write_text
from twin.search.candidates import file_of
from twin.search.judging.page import search_page
from twin.search.judging.report import SearchReport, search_summary
from twin.search.knob import Value
from twin.search.problem import SearchProblem
from twin.search.study.options import FinishedTrial, StudyResult

FILES = ("summary.json", "report.html", "policy.yaml", "scenario.yaml", "trials.parquet")
"""What `write_search` writes, in the order it returns them."""


def write_search(
    report: SearchReport, study: StudyResult, settings: Mapping[str, Any], directory: Path
) -> tuple[list[Path], dict[str, Any]]:
    """Write every file of a search into `directory`; return their paths and the summary.

    `policy.yaml` and `scenario.yaml` are the recommended ones: the scenario's own where the
    default is kept.

    Args:
        report: the search, judged.
        study: its trials.
        settings: how it was run, for `summary.json`.
        directory: where to; only namesakes in it are replaced.

    Raises:
        InputError: `directory` cannot be written.
    """
    summary = {**search_summary(report), "study": {"name": study.name, **settings}}
    file = file_of(report.problem, report.judgement.candidate)
    policy = {"schema_version": file.policy.schema_version, **_written(file.policy)}
    with whole_directory(directory) as folder:
        write_text(folder / "summary.json", _json(summary))
        write_text(folder / "report.html", search_page(report))
        write_text(folder / "policy.yaml", _yaml(policy))
        write_text(folder / "scenario.yaml", _yaml(_written(file)))
        pq.write_table(trials_table(report.problem, study.trials), folder / "trials.parquet")
    return [directory / name for name in FILES], summary


def trials_table(problem: SearchProblem, trials: Sequence[FinishedTrial]) -> pa.Table:
    """Return the trials, a row each: what became of it, objectives, violations, and its knobs.

    A knob that stands at its default is null.
    """
    rows = [trial.evaluation for trial in trials]
    columns: dict[str, pa.Array] = {
        "trial": pa.array([trial.number for trial in trials], pa.int64()),
        "state": pa.array([trial.state for trial in trials], pa.string()),
        "reason": pa.array([trial.reason for trial in trials], pa.string()),
        "share": pa.array([trial.share for trial in trials], pa.float64()),
    }
    for name in problem.objectives:
        columns[name] = pa.array([row.objectives.get(name) for row in rows], pa.float64())
    for name in dict.fromkeys(name for row in rows for name in row.violations):
        values = [row.violations.get(name) for row in rows]
        columns[f"violation.{name}"] = pa.array(values, pa.float64())
    for knob in problem.knobs:
        columns[knob.key] = _column([row.candidate.get(knob.key) for row in rows])
    return pa.table(columns)


def _column(values: Sequence[Value]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # of several kinds
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def _written(model: Any) -> dict[str, Any]:
    data: dict[str, Any] = model.model_dump(mode="json", exclude_unset=True)
    return data


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _yaml(data: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True))
