"""A search in a terminal: what is recommended, what it rests on, what matters, what binds."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from twin.report.numbers import percent
from twin.search.judging.report import SearchReport
from twin.search.judging.stretch import EDGES, STRETCH_HEADINGS, stretch_rows
from twin.search.judging.table import (
    GAIN_HEADINGS,
    LIMIT_HEADINGS,
    Rows,
    change_rows,
    constraint_rows,
    gain_rows,
)
from twin.search.judging.told import told_alike

_SHOWN_KNOBS = 5
_STYLES = {"adopt": "bold blue", "keep the default": "bold"}


def terminal_summary(report: SearchReport) -> RenderableType:
    """Return a search, judged, for a terminal; strings from the inputs are never markup."""
    judgement = report.judgement
    style = _STYLES.get(judgement.decision, "bold dark_orange")
    parts: list[RenderableType] = [Text(judgement.sentence, style=style)]
    if judgement.candidate:
        rows = change_rows(judgement.candidate, report.problem.defaults)
        parts += [Text(""), _table(("Key", "default", "recommended"), rows)]
    shown = report.shown
    if shown is not None and shown.gains:
        heading = f"On held-out traffic, {shown.gains[0].paired.pairs} {shown.over}, paired:"
        parts += [Text(""), Text(heading, style="dim")]
        parts.append(_table(GAIN_HEADINGS, gain_rows(report, shown)))
        parts.append(_table(LIMIT_HEADINGS, constraint_rows(shown)))
    parts += _lengths(report)
    parts += [Text(""), *_matters(report), *_binds(report)]
    if judgement.decision == "adopt":
        parts.append(Text(report.hardware.sentence))
        if report.hardware.command is not None:
            parts.append(Text(f"Find out on the GPU: {report.hardware.command}"))
    parts += [Text(f"Note: {note}") for note in report.notes]
    return Group(*parts)


def _lengths(report: SearchReport) -> list[RenderableType]:
    if not any(report.stretches.values()):
        return []
    over = report.shown.over if report.shown else "seeds"
    rows = stretch_rows(report.stretches, over)
    return [Text(""), _table(STRETCH_HEADINGS, rows), Text(EDGES, style="dim")]


def _matters(report: SearchReport) -> list[RenderableType]:
    first = report.objectives[0]
    if first.name in report.explanation.alike:
        return [Text(told_alike(first, report.explanation.alike[first.name]))]
    shares = report.explanation.importance.get(first.name, ())
    known = [f"{s.key} {percent(s.share)}" for s in shares[:_SHOWN_KNOBS] if s.share > 0]
    if not known:
        return []
    return [Text(f"What {first.title} goes with: {', '.join(known)}.")]


def _binds(report: SearchReport) -> list[RenderableType]:
    explanation = report.explanation
    bound = (("Default", explanation.default_binding), ("Recommended", explanation.binding))
    return [Text(f"{name}: {one.sentence}") for name, one in bound if one is not None]


def _table(head: Sequence[str], rows: Rows) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, name in enumerate(head):
        table.add_column(Text(name), overflow="fold", justify="left" if not number else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
