"""How far a study is and what it says: read from its folder, never locking it."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from app.answers.search.order import Order
from app.answers.search.studies import Launch, Study
from twin.report.charts.chart import Chart
from twin.report.numbers import seconds, significant

if TYPE_CHECKING:
    from twin.search.judging.report import SearchReport
    from twin.search.problem import SearchProblem
    from twin.search.study.reading import Seen, StudyReader

State = Literal[
    "starting", "running", "judging", "pausing", "paused", "stopped", "failed", "done"
]  # fmt: skip

JOURNAL = "study.journal"
HELD_OUT = "On the traffic of the trials, where the best of many look better than they are."


@dataclass(frozen=True, slots=True)
class Look:
    """A study at a moment.

    Attributes:
        state: what it does; `stopped`: it ended without being asked and without a word.
        why: one line of a failed one; else empty.
        done, total, begun: trials finished, in the end, made so far.
        best: best value of the first objective so far; empty: none yet.
        unit: of it, where `best` does not say.
        left_s: seconds to the last trial at the pace of this run; None: not known.
        complete: trials seen on all of the traffic: something to judge.
    """

    state: State
    why: str
    done: int
    total: int
    begun: int
    best: str
    unit: str
    left_s: float | None
    complete: int

    @property
    def at_work(self) -> bool:
        """Whether its process lives."""
        return self.state in ("starting", "running", "judging", "pausing")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a heading."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What a study says, finished or not.

    Attributes:
        sentence: the verdict; empty: not judged yet.
        decision: as in `summary.json`; empty: not judged yet.
        charts: `tradeoff` (not where TTFT alone is wanted), `trials`, `importance`, and judged
            `gains` and `sensitivity`.
        tables: `best`, `importance`, and judged `changes`, `gains`, `limits`, `neighbours` and
            `lengths` of the runs that figures are of.
        rule: when a gain counts.
        edges: what to know of figures of runs of different length.
        notes: reasons and caveats, a sentence each.
        binds: what binds, a sentence each for the default and the recommended policy.
        hardware: what a GPU has said.
        command: how to ask one; empty: it is known, or there is nothing to ask about.
    """

    sentence: str
    decision: str
    charts: dict[str, Chart]
    tables: dict[str, Table]
    rule: str
    edges: str
    notes: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()
    hardware: str = ""
    command: str = ""


@dataclass(slots=True)
class Watched:
    """A study that somebody watches; what was read once is kept.

    Attributes:
        study: which one.
    """

    study: Study
    _order: Order | None = None
    _reader: "StudyReader | None" = None
    _problem: "SearchProblem | None" = None
    _found: tuple[object, Findings] | None = field(default=None)

    def look(self) -> Look:
        """Return how far it is, and start the judging that was asked for while it ran.

        Raises:
            InputError: its folder cannot be read.
        """
        alive, launch, seen = self.study.alive, self.study.launch, self._seen()
        if launch is not None and not alive and launch.asked == "judge" and seen.begun:
            self.study.start(trials=seen.begun)
            alive, launch = True, self.study.launch
        state, why = self._state(alive, launch, seen)
        total = launch.trials if launch else self.order.wanted.trials
        return Look(
            state,
            why,
            len(seen.finished),
            total,
            seen.begun,
            *self._best(seen),
            _left_s(launch, seen, total) if state == "running" else None,
            sum(trial.state == "complete" for trial in seen.finished),
        )

    def findings(self) -> Findings:
        """Return what it says so far.

        Raises:
            InputError: its files cannot be read, or are of another version.
        """
        seen, summary = self._seen(), None if self.study.alive else self.study.judged()
        verdicts = sorted((p.name, p.stat().st_mtime_ns) for p in self.study.out.glob("*.json"))
        key = (len(seen.finished), summary is None, tuple(verdicts))
        if self._found is None or self._found[0] != key:
            self._found = (key, self._findings(seen, summary))
        return self._found[1]

    def _findings(self, seen: "Seen", summary: dict[str, Any] | None) -> Findings:
        from twin.search.judging.stored import provisional_report, stored_report

        if summary is None:
            report = provisional_report(self.problem(), seen.finished)
        else:
            report = stored_report(self.problem(), seen.finished, summary, self.study.out)
        return findings_of(report, judged=summary is not None, out=self.study.out)

    @property
    def order(self) -> Order:
        """What was asked for."""
        if self._order is None:
            self._order = self.study.order
        return self._order

    def problem(self) -> "SearchProblem":
        """Return what it searches."""
        if self._problem is None:
            self._problem = self.order.problem(self.study.folder / "input")
        return self._problem

    def _seen(self) -> "Seen":
        from twin.search.study.reading import StudyReader

        if self._reader is None:
            self._reader = StudyReader(self.study.out / JOURNAL)
        return self._reader.look()

    def _state(self, alive: bool, launch: Launch | None, seen: "Seen") -> tuple[State, str]:
        if launch is None:
            return "stopped", ""
        if alive:
            if launch.asked:
                return "pausing", ""
            if not seen.begun:
                return "starting", ""
            return ("judging" if len(seen.finished) >= launch.trials else "running"), ""
        if self.study.judged() is not None:
            return "done", ""
        if launch.asked:
            return "paused", ""
        word = self.study.last_word()
        return ("failed", word) if word else ("stopped", "")

    def _best(self, seen: "Seen") -> tuple[str, str]:
        from twin.search.objectives import OBJECTIVES
        from twin.search.study.progress import best_of

        wanted = self.order.wanted
        objective = OBJECTIVES[wanted.objectives[0]]
        unit = objective.unit_at(wanted.usd_per_gpu_hour)
        best = best_of(list(seen.finished), objective.name)
        value = None if best is None else best.evaluation.objectives[objective.name]
        if unit == "s":
            return (seconds(value) if best else ""), ""
        return (significant(value) if best else ""), unit


def _left_s(launch: Launch | None, seen: "Seen", total: int) -> float | None:
    """Seconds left at the pace of this run; None: no trial of it has ended."""
    started_s = launch.started_s if launch else 0.0
    fresh = sum(at_s >= started_s for at_s in seen.finished_at_s)
    if not fresh:
        return None
    return (time.time() - started_s) / fresh * (total - len(seen.finished))


def findings_of(report: "SearchReport", *, judged: bool, out: Path) -> Findings:
    """Return a report as charts, tables and sentences.

    Args:
        report: of a study, finished or not.
        judged: whether its verdict is there.
        out: folder of the search; it is left out of what is shown.
    """
    from twin.search.judging.bars import gains_chart, importance_chart, sensitivity_chart
    from twin.search.judging.chart import trials_chart
    from twin.search.judging.page import RULE
    from twin.search.judging.stretch import EDGES
    from twin.search.judging.tradeoff import tradeoff_chart

    tradeoff = tradeoff_chart(report)
    charts = [] if tradeoff is None else [tradeoff]
    charts += [trials_chart(report), importance_chart(report)]
    if judged:
        charts += [gains_chart(report.shown), sensitivity_chart(report)]
    judgement, hardware = report.judgement, report.hardware
    shown = report.shown
    return Findings(
        sentence=judgement.sentence if judged else "",
        decision=judgement.decision if judged else "",
        charts={chart.name: chart for chart in charts},
        tables=_tables(report),
        rule=RULE,
        edges=EDGES,
        notes=(*(shown.reasons if shown else ()), *report.notes),
        binds=_binds(report),
        hardware=hardware.sentence,
        command=(hardware.command or "").replace(f"{out}/", ""),
    )


def _tables(report: "SearchReport") -> dict[str, Table]:
    from twin.search.judging.stretch import STRETCH_HEADINGS, stretch_rows
    from twin.search.judging.table import (
        GAIN_HEADINGS,
        LIMIT_HEADINGS,
        change_rows,
        constraint_rows,
        gain_rows,
        importance_rows,
        neighbour_rows,
        side_by_side,
    )
    from twin.search.judging.told import capitalised, title_of

    names = [capitalised(title_of(name)) for name in report.problem.objectives]
    head, rows = side_by_side(report)
    found = {"best": _table(head, rows if len(head) > 2 else [])}
    shares = importance_rows(report)
    first = f"median {names[0]} by level"
    found["importance"] = _table(["knob", *(f"share: {n}" for n in names), first], shares)
    changed = change_rows(report.judgement.candidate, report.problem.defaults)
    found["changes"] = _table(["key", "default", "recommended"], changed)
    near = neighbour_rows(report, report.problem.objectives)
    found["neighbours"] = _table(["knob", "value", *names, "constraints"], near)
    if report.shown is not None:
        found["gains"] = _table(list(GAIN_HEADINGS), gain_rows(report, report.shown))
        found["limits"] = _table(list(LIMIT_HEADINGS), constraint_rows(report.shown))
    if any(report.stretches.values()):
        over = report.shown.over if report.shown else "seeds"
        found["lengths"] = _table(list(STRETCH_HEADINGS), stretch_rows(report.stretches, over))
    return {name: table for name, table in found.items() if table.rows}


def _table(head: list[str], rows: list[list[str]]) -> Table:
    if any(len(row) != len(head) for row in rows):
        raise ValueError(f"rows of another width than {head}")
    return Table(tuple(head), tuple(tuple(row) for row in rows))


def _binds(report: "SearchReport") -> tuple[str, ...]:
    both = (
        ("Default", report.explanation.default_binding),
        ("Recommended", report.explanation.binding),
    )
    return tuple(f"{name}: {one.sentence}" for name, one in both if one is not None)
