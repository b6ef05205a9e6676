"""The accuracy table of the capacity model: on screen, as JSON and as Markdown."""

import statistics
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from calibrate.capacity.fit import REFERENCE
from calibrate.capacity.holdout import LeftOut
from calibrate.capacity.predict import (
    FITTED_ALONE,
    IDENTITY,
    Prediction,
    median_error,
    of_version,
    worst_error,
)
from twin.cli.output import console_for

_COLUMNS = (
    "row",
    "model",
    "GPU",
    "TP",
    "engine",
    "measured",
    "predicted",
    "error",
    "kind",
    "remark",
)

TABLE_BEGINS = "<!-- table of twin-calibrate capacity -->"
TABLE_ENDS = "<!-- end of table -->"


def print_table(
    predictions: Sequence[Prediction], left_out: Sequence[LeftOut], *, to_stderr: bool = False
) -> None:
    """Print the table and its medians."""
    console = console_for("-" if to_stderr else None)
    table = Table(title="KV blocks: measured and predicted")
    for column in _COLUMNS:
        table.add_column(column, justify="right" if column in _COLUMNS[5:8] else "left")
    for prediction in predictions:
        table.add_row(*_cells(prediction))
    console.print(table)
    for line in summary_lines(predictions, left_out):
        console.print(line)


def summary_lines(predictions: Sequence[Prediction], left_out: Sequence[LeftOut]) -> list[str]:
    """Return one sentence a statistic."""
    dense = of_version(predictions, REFERENCE.version)
    free = [p for p in predictions if p.kind != FITTED_ALONE]
    lines = [
        f"vLLM {REFERENCE.version}, dense: {_spread(dense)}",
        f"all predicted rows: {_spread(predictions)}",
        f"rows that did not fix a parameter alone: {_spread(free)}",
    ]
    if left_out:
        errors = [abs(item.error) for item in left_out]
        lines.append(
            f"vLLM {REFERENCE.version}, dense, each left out of the fit: median "
            f"{_percent(statistics.median(errors))}, largest {_percent(max(errors))} "
            f"({len(errors)} rows)"
        )
    return lines


def as_json(predictions: Sequence[Prediction], left_out: Sequence[LeftOut]) -> dict[str, Any]:
    """Return the table as plain data; errors are relative, not per cent."""
    apart = {item.row.row_id: item.error for item in left_out}
    return {
        "schema_version": 1,
        "rows": [
            {
                "id": p.row.row_id,
                "model": p.row.model,
                "gpu": p.row.gpu,
                "tp": p.row.tp,
                "engine_version": p.row.version,
                "measured_blocks": p.row.blocks,
                "predicted_blocks": p.blocks,
                "relative_error": p.error,
                "relative_error_left_out": apart.get(p.row.row_id),
                "kind": p.kind,
                "remark": p.remark,
            }
            for p in predictions
        ],
        "median_relative_error": median_error(predictions),
        "worst_relative_error": worst_error(predictions),
    }


def as_markdown(predictions: Sequence[Prediction], left_out: Sequence[LeftOut]) -> str:
    """Return the table and its medians as Markdown."""
    apart = {item.row.row_id: item.error for item in left_out}
    lines = [
        "| " + " | ".join((*_COLUMNS[:8], "left out", *_COLUMNS[8:])) + " |",
        "|" + "---|" * (len(_COLUMNS) + 1),
    ]
    for prediction in predictions:
        cells = _cells(prediction)
        missing = apart.get(prediction.row.row_id)
        cells.insert(8, "" if missing is None else _percent(missing, signed=True))
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"* {line}" for line in summary_lines(predictions, left_out)), ""]
    return "\n".join(lines)


def into_page(page: str, table: str) -> str:
    """Return a Markdown page with the table between its two marker comments; else the table."""
    head, found, rest = page.partition(TABLE_BEGINS)
    _, closed, tail = rest.partition(TABLE_ENDS)
    if not found or not closed:
        return table
    return f"{head}{TABLE_BEGINS}\n\n{table}\n{TABLE_ENDS}{tail}"


def _cells(prediction: Prediction) -> list[str]:
    row = prediction.row
    return [
        row.row_id,
        row.model,
        row.gpu,
        str(row.tp),
        row.version,
        f"{row.blocks:,}",
        "–" if prediction.blocks is None else f"{prediction.blocks:,}",
        "–"
        if prediction.error is None or prediction.kind == IDENTITY
        else _percent(prediction.error, signed=True),
        prediction.kind,
        prediction.remark,
    ]


def _spread(predictions: Sequence[Prediction]) -> str:
    median, worst = median_error(predictions), worst_error(predictions)
    if median is None or worst is None:
        return "no rows"
    count = sum(p.error is not None and p.kind != IDENTITY for p in predictions)
    return f"median {_percent(median)}, largest {_percent(worst)} ({count} rows)"


def _percent(value: float, *, signed: bool = False) -> str:
    return f"{value * 100:+.2f} %" if signed else f"{value * 100:.2f} %"
