"""Tables of a search's report, as rows of text."""

from collections.abc import Mapping, Sequence

from twin.report.numbers import MISSING, percent
from twin.search.judging.binding import Binding
from twin.search.judging.confirm import Confirmation
from twin.search.judging.error_of_difference import stands_in
from twin.search.judging.report import SearchReport
from twin.search.judging.told import (
    CONSTRAINTS,
    capitalised,
    objective_text,
    relative_text,
    title_of,
    value_text,
)
from twin.search.knob import Candidate, Value
from twin.search.objectives import OBJECTIVES

LIMIT_HEADINGS = ("limit", "forecast error", "default", "found")

Rows = list[list[str]]

GAIN_HEADINGS = (
    "objective", "default", "found", "gain (+ better)", "95 % interval", "forecast error",
    "SLO tighter, looser", "verdict",
)  # fmt: skip


def gain_rows(report: SearchReport, one: Confirmation) -> Rows:
    """Return a row an objective: what the default and a candidate give on fresh traffic."""
    rows = []
    for gain in one.gains:
        objective, paired = OBJECTIVES[gain.objective], gain.paired
        unit = report.unit(objective)
        interval = MISSING
        if paired.low is not None and paired.high is not None:
            interval = f"{relative_text(paired.low)} to {relative_text(paired.high)}"
        limits = ", ".join(relative_text(at) for at in gain.at_limits.values())
        rows.append(
            [
                capitalised(objective.title),
                objective_text(paired.a, unit),
                objective_text(paired.b, unit),
                relative_text(paired.relative),
                interval,
                f"±{percent(gain.threshold)} ({stands_in(gain.objective)})",
                limits or MISSING,
                f"{gain.verdict}: {gain.why}" if gain.why else gain.verdict,
            ]
        )
    return rows


def constraint_rows(one: Confirmation) -> Rows:
    """Return a row a constraint: the forecast's error, how far from its limit both are."""
    names = list(dict.fromkeys([*one.default_violations, *one.violations]))
    return [
        [
            capitalised(CONSTRAINTS.get(name, name)),
            f"±{percent(one.limit_errors[name])}" if one.limit_errors.get(name) else MISSING,
            margin(one.default_violations.get(name)),
            margin(one.violations.get(name)) + (", close" if name in one.close else ""),
        ]
        for name in names
    ]


def margin(violation: float | None) -> str:
    """Return how far a value is from its limit, in words."""
    if violation is None:
        return MISSING
    if violation > 0:
        return f"breaks it by {percent(violation)}"
    return f"{percent(-violation)} below" if violation else "at the limit"


def change_rows(candidate: Candidate, defaults: Mapping[str, Value]) -> Rows:
    """Return a row a changed key: key, the default's value, the candidate's."""
    return [
        [key, value_text(defaults.get(key)), value_text(value)] for key, value in candidate.items()
    ]


def side_by_side(report: SearchReport) -> tuple[list[str], Rows]:
    """Return (heading, rows) of the default beside the ten best, a column a candidate.

    Figures are of the trials' traffic: the best of many look better there than they are.
    """
    top = report.explanation.top
    default = next((t.evaluation for t in report.trials if not t.candidate), None)
    columns = [t for t in top if t.candidate]
    head = ["", "default", *(f"trial {tried.number}" for tried in columns)]
    evaluations = [default, *(tried.evaluation for tried in columns)]
    rows = [
        [
            capitalised(title_of(o.name)),
            *(
                MISSING
                if e is None or o.name not in e.objectives
                else objective_text(e.objectives[o.name], report.unit(o))
                for e in evaluations
            ),
        ]
        for o in report.objectives
    ]
    names = list(dict.fromkeys(n for e in evaluations if e for n in e.violations))
    rows += [
        [
            f"{capitalised(CONSTRAINTS.get(name, name))}, margin",
            *(percent(-e.violations[name]) if e and name in e.violations else MISSING
              for e in evaluations),
        ]
        for name in names
    ]  # fmt: skip
    defaults = report.problem.defaults
    keys = [k.key for k in report.problem.knobs if any(k.key in t.candidate for t in columns)]
    rows += [
        [
            key,
            value_text(defaults.get(key)),
            *(value_text(t.candidate[key]) if key in t.candidate else "" for t in columns),
        ]
        for key in keys
    ]
    return head, rows


def binding_rows(default: Binding | None, found: Binding | None) -> Rows:
    """Return a row a figure of what binds, for the default and the recommended policy."""
    both = [dict(bound.figures) if bound else {} for bound in (default, found)]
    names = list(dict.fromkeys(name for figures in both for name in figures))
    return [[name, *(figures.get(name, MISSING) for figures in both)] for name in names]


def importance_rows(report: SearchReport) -> Rows:
    """Return a row a knob: its share for each objective, and medians of the first by level.

    Objectives in which the trials are alike have no shares and are left out.
    """
    by_objective = {name: found for name, found in report.explanation.importance.items() if found}
    if not by_objective:
        return []
    name, first = next(iter(by_objective.items()))
    unit = report.unit(OBJECTIVES[name])
    return [
        [
            one.key,
            *(
                percent(next((x.share for x in shares if x.key == one.key), None))
                for shares in by_objective.values()
            ),
            ", ".join(
                f"{level}: {objective_text(value, unit)}" for level, value in one.levels.items()
            ),
        ]
        for one in first
    ]


def neighbour_rows(report: SearchReport, objectives: Sequence[str]) -> Rows:
    """Return a row a neighbour: knob, value, gain in each objective, what it breaks."""
    return [
        [
            one.key,
            one.value,
            *(relative_text(one.relative.get(name)) for name in objectives),
            one.infeasible
            or ", ".join(f"breaks {CONSTRAINTS.get(name, name)}" for name in one.broken)
            or "keeps all",
        ]
        for one in report.explanation.neighbours
    ]
