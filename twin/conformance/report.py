"""What a replay found, and how it is shown."""

import json
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_SHOWN_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class StepDifference:
    """The first step whose decisions differ.

    Attributes:
        step: index of the schedule call.
        expected: recorded values of the fields that differ, by field.
        got: our values of the same fields.
    """

    step: int
    expected: dict[str, Any]
    got: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """How far a recording could be followed.

    Attributes:
        name: the file.
        engine: engine and version that were recorded.
        steps: recorded steps.
        identical: leading steps in which every recorded field is equal.
        first_difference: None when all steps are identical.
    """

    name: str
    engine: str
    steps: int
    identical: int
    first_difference: StepDifference | None = None

    @property
    def passed(self) -> bool:
        """Whether every step is identical."""
        return self.first_difference is None

    @property
    def line(self) -> str:
        """One line for people and logs."""
        return f"{self.name}: {self.identical} of {self.steps} steps identical"


def render(report: ConformanceReport, console: Console) -> None:
    """Print the report's line, and the first differing step side by side if there is one."""
    console.print(report.line, markup=False, highlight=False, soft_wrap=True)
    difference = report.first_difference
    if difference is None:
        return
    table = Table(title=f"first difference: step {difference.step}", title_justify="left")
    table.add_column("field")
    table.add_column(f"recorded ({report.engine})", overflow="fold", ratio=1)
    table.add_column("replayed", overflow="fold", ratio=1)
    for field, expected in difference.expected.items():
        recorded, replayed = _side_by_side(expected, difference.got[field])
        table.add_row(field, Text(recorded), Text(replayed))
    console.print(table)


def _side_by_side(expected: Any, got: Any) -> tuple[str, str]:
    """Return both values as JSON; of long ones the part from the first difference on."""
    texts = (json.dumps(expected), json.dumps(got))
    if max(map(len, texts)) <= _SHOWN_CHARACTERS:
        return texts
    same = next(
        (at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b),
        min(map(len, texts)),
    )
    start = max(0, same - _SHOWN_CHARACTERS // 4)
    first, second = (_excerpt(text, start) for text in texts)
    return first, second


def _excerpt(text: str, start: int) -> str:
    end = start + _SHOWN_CHARACTERS
    return ("… " if start else "") + text[start:end] + (" …" if end < len(text) else "")
