"""A setup at other loads: up to which it holds, what breaks first, and the chart of it."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from app.answers.setup import Setup
from twin.sweep.drawing import sweep_chart
from twin.sweep.first_to_break import first_to_break
from twin.sweep.knee import knee
from twin.sweep.limit import load_limit
from twin.sweep.sweep import sweep_load
from twin.sweep.terminal import HEADINGS, cells, knee_sentence

Progress = Callable[[int, int | None], None]


def load_answer(setup: Setup, progress: Progress | None = None) -> dict[str, Any]:
    """Simulate a setup at several loads.

    Returns:
        JSON-ready: `chart` (a `Chart`'s fields), `sentences` (limit, first to break, knee),
        `head` and `rows` of the table of loads, `notes`, `knee` (load up to which goodput
        follows, None where it always does).

    Raises:
        InputError: the setup cannot be simulated.
    """
    file, inputs = setup.inputs()
    found = sweep_load(file, inputs, progress=progress)
    return {
        "chart": asdict(sweep_chart({"this setup": found})),
        "sentences": [
            load_limit(found).sentence,
            first_to_break(found).sentence,
            knee_sentence(found),
        ],
        "head": [heading for heading, _ in HEADINGS],
        "rows": [list(row) for row in cells(found)],
        "notes": list(found.notes),
        "knee": asdict(knee(found)),
    }
