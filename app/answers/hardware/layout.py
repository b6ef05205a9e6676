"""Sectors and bytes of a setup's KV cache by block size and dtype (`twin memory`)."""

from dataclasses import dataclass

from app.answers.setup import Setup
from twin.memory.explanation import explain
from twin.report.charts.chart import Chart
from twin.report.charts.memory import bytes_heat_map
from twin.report.memory import (
    SIZE_HEADINGS,
    STEP_HEADINGS,
    facts_lines,
    notes_of,
    size_cells,
    step_cells,
)


@dataclass(frozen=True, slots=True)
class LayoutAnswer:
    """Where the bytes of KV lie and go.

    Attributes:
        chart: shares of bytes by block size and dtype.
        facts: layout and batch, in sentences.
        sizes, steps: rows as tables show them.
        notes: what to keep in mind.
    """

    chart: Chart
    facts: list[str]
    sizes: list[dict[str, str]]
    steps: list[dict[str, str]]
    notes: list[str]


def layout_answer(setup: Setup) -> LayoutAnswer:
    """Return what a setup's KV layout means, beside other block sizes and dtypes.

    Raises:
        InputError: its parts do not go together, or no request fits.
    """
    found = explain(setup.scenario())
    return LayoutAnswer(
        bytes_heat_map(found),
        facts_lines(found)[1:],
        _named(SIZE_HEADINGS, size_cells(found.rows)),
        _named(STEP_HEADINGS, step_cells(found.rows)),
        notes_of(found),
    )


def _named(headings: tuple[str, ...], cells: list[list[str]]) -> list[dict[str, str]]:
    return [dict(zip(headings, row, strict=True)) for row in cells]
