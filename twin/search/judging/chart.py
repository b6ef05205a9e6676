"""The trials of a search as a chart: two objectives against each other, or one over trials."""

from typing import Any

from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import Spec, colour, log_ticks
from twin.search.evaluation import Evaluation
from twin.search.judging.pareto import TIE, Tried, better, distinct
from twin.search.judging.report import SearchReport
from twin.search.judging.told import capitalised, objective_text, told
from twin.search.objectives import Objective

BREAKS, KEEPS, FRONT = "breaks a constraint", "keeps all constraints", "Pareto set"
DEFAULT, FOUND, BEST = "default", "recommended", "best trial"

_LOG_FROM = 20
"""Values that span more than this factor stand on a log scale."""

_LEAST_SPAN = 10 * TIE
"""Relative: a linear axis never spans less, so that what counts as equally good looks so."""

_FEW = 60
"""Marks up to which they hardly hide one another."""

_STAR = (
    "M0,-1L0.2245,-0.309L0.9511,-0.309L0.3633,0.118L0.5878,0.809"
    "L0,0.382L-0.5878,0.809L-0.3633,0.118L-0.9511,-0.309L-0.2245,-0.309Z"
)

MARKS: dict[str, tuple[str, str, float, int]] = {
    # kind: colour, shape, opacity, size
    BREAKS: ("slo", "triangle-up", 0.3, 30),
    KEEPS: ("baseline", "circle", 0.55, 30),
    FRONT: ("current", "circle", 1.0, 60),
    DEFAULT: ("ink", "diamond", 1.0, 160),
    FOUND: ("decode", _STAR, 1.0, 320),
    BEST: ("decode", _STAR, 1.0, 320),
}


def trials_chart(report: SearchReport) -> Chart:
    """Return the trials: the first two objectives, or a single one over the trials' numbers."""
    objectives = report.objectives[:2]
    tried = [t for t in distinct(report.trials) if t.evaluation.infeasible is None]
    several = len(objectives) == 2
    title = "Trials and Pareto set" if several else f"{capitalised(objectives[0].title)} by trial"
    if not tried:
        return Chart("trials", title, {}, [], "No trial could be simulated.")
    rows = [_row(one, report, objectives) for one in tried]
    alt = _sentence(report, rows, objectives)
    layers = _layers(report, rows, objectives)
    spec = unit_chart(title, alt, rows, {"layer": layers})
    caption = "On the traffic of the trials, where the best of many look better than they are."
    left_out = len(report.trials) - len(tried)
    if left_out:
        caption += f" {left_out:,} trials are not shown: repeated, or not possible."
    return Chart("trials", title, spec, rows, alt, caption)


def _row(one: Tried, report: SearchReport, objectives: list[Objective]) -> Row:
    front = one.number in {t.number for t in report.explanation.front}
    keeps = one.evaluation.meets
    kind = FRONT if front and len(objectives) > 1 else KEEPS if keeps else BREAKS
    return {
        "trial": one.number,
        "kind": kind if one.candidate else DEFAULT,
        **{o.name: rounded(one.evaluation.objectives[o.name]) for o in objectives},
        "policy": told(one.candidate),
        "keeps": keeps,
        "front": front,
    }


def _found(report: SearchReport) -> Evaluation | None:
    chosen = report.judgement.chosen
    return None if chosen is None else chosen.tried.evaluation


def _layers(report: SearchReport, rows: list[Row], objectives: list[Objective]) -> list[Spec]:
    y = value_axis(report, objectives[0], rows)
    several = len(objectives) == 2
    x = value_axis(report, objectives[1], rows) if several else _trial_axis()
    found = _found(report)
    kinds = [kind for kind in MARKS if any(row["kind"] == kind for row in rows)]
    if found is not None:
        kinds.append(FOUND)
    layers = [_front_line(x, y)] if several else [_best_line(objectives[0], rows, x, y)]
    tooltip = [
        {"field": "trial", "type": "quantitative"},
        {"field": "kind", "type": "nominal"},
        *({"field": o.name, "type": "quantitative", "title": o.title} for o in objectives),
        {"field": "policy", "type": "nominal"},
    ]
    # One layer a kind, in order, so that what matters lies on top.
    for kind in kinds:
        layer: Spec = {
            "transform": [{"filter": f"datum.kind === '{kind}'"}],
            "mark": {"type": "point", "filled": True, **size_of(kind, len(rows))},
            "encoding": {"x": x, "y": y, **looks_of(kinds), "tooltip": tooltip},
        }
        if kind == FOUND and found is not None:
            layer["data"] = {"values": [_found_row(report, found, objectives)]}
        layers.append(layer)
    return layers


def size_of(kind: str, of: int) -> Spec:
    """Return how large and opaque marks of a kind are, `of` so many; few are never faint."""
    _, _, opacity, size = MARKS[kind]
    if of <= _FEW:
        return {"size": max(size, 50), "opacity": 1.0}
    return {"size": size, "opacity": opacity}


def looks_of(kinds: list[str]) -> Spec:
    """Return colour and shape channels that tell kinds of trials apart."""

    def channel(values: list[Any]) -> Spec:
        scale = {"domain": kinds, "range": values}
        # Two columns fit a chart of half a page; one row of five kinds would be cut off.
        columns = 2 if len(kinds) > 3 else 3
        legend = {"title": None, "symbolOpacity": 1, "symbolSize": 90, "columns": columns}
        return {"field": "kind", "type": "nominal", "scale": scale, "legend": legend}

    return {
        "color": channel([colour(MARKS[kind][0]) for kind in kinds]),
        "shape": channel([MARKS[kind][1] for kind in kinds]),
    }


def _front_line(x: Spec, y: Spec) -> Spec:
    return {
        "transform": [{"filter": "datum.front"}],
        "mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.6, "color": colour("current")},
        "encoding": {"x": x, "y": y, "order": {"field": x["field"], "type": "quantitative"}},
    }


def _best_line(objective: Objective, rows: list[Row], x: Spec, y: Spec) -> Spec:
    """The best so far that keeps all constraints, as a stair."""
    steps: list[Row] = []
    for row in rows:
        value = row[objective.name]
        if row["keeps"] and (not steps or better(value, steps[-1][objective.name], objective)):
            steps.append({"trial": row["trial"], objective.name: value})
    if steps:
        steps.append({**steps[-1], "trial": rows[-1]["trial"]})
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5, "opacity": 0.6}
    return {
        "data": {"values": steps},
        "mark": {**mark, "color": colour("current")},
        "encoding": {"x": x, "y": y},
    }


def _found_row(report: SearchReport, found: Evaluation, objectives: list[Objective]) -> Row:
    values: Row = {o.name: rounded(found.objectives[o.name]) for o in objectives}
    told_so = told(found.candidate)
    return {"trial": report.judgement.trial, "kind": FOUND, **values, "policy": told_so}


def _trial_axis() -> Spec:
    axis = {"title": "Trial", "grid": False, "tickMinStep": 1}
    return {
        "field": "trial",
        "type": "quantitative",
        "axis": axis,
        "scale": {"padding": 8, "nice": False},
    }


def value_axis(report: SearchReport, objective: Objective, rows: list[Row]) -> Spec:
    """Return the encoding of an objective: on a log scale where its values span decades."""
    values = [row[objective.name] for row in rows]
    low, high = min(values), max(values)
    better = "more" if objective.direction == "maximize" else "less"
    title = f"{capitalised(objective.title)} ({report.unit(objective)}, {better} is better)"
    base: Spec = {"field": objective.name, "type": "quantitative"}
    if low > 0 and high > _LOG_FROM * low:
        axis = {"title": title, "values": log_ticks(low / 2, high * 2), "labelOverlap": True}
        axis["labelExpr"] = "format(datum.value, ',~r')"
        return {**base, "scale": {"type": "log", "padding": 8}, "axis": axis}
    scale: Spec = {"zero": False, "padding": 8}
    least = _LEAST_SPAN * max(abs(low), abs(high))
    if high - low < least:
        middle = (low + high) / 2
        scale["domain"] = [rounded(middle - least / 2), rounded(middle + least / 2)]
    return {**base, "scale": scale, "axis": {"title": title}}


def _sentence(report: SearchReport, rows: list[Row], objectives: list[Objective]) -> str:
    first = objectives[0]
    unit = report.unit(first)
    kept = [row[first.name] for row in rows if row["keeps"]]
    names = " against ".join(o.title for o in objectives)
    text = f"{capitalised(names)} of {len(rows):,} candidates"
    if kept:
        best = max(kept) if first.direction == "maximize" else min(kept)
        text += f"; the best that keeps all constraints has {objective_text(best, unit)}"
    default = next((row[first.name] for row in rows if row["kind"] == DEFAULT), None)
    if default is not None:
        text += f", the default {objective_text(default, unit)}"
    return f"{text}."
