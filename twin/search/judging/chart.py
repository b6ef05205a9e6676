"""The trials of a search as a chart: two objectives against each other, or one over trials."""

from typing import Any

from twin.report.charts import Chart, Row, rounded, unit_chart
from twin.report.style import Spec, colour, log_ticks
from twin.search.evaluation import Evaluation
from twin.search.judging.pareto import Tried, distinct
from twin.search.judging.report import SearchReport
from twin.search.judging.told import capitalised, objective_text, told
from twin.search.objectives import Objective

BREAKS, KEEPS, FRONT = "breaks a constraint", "keeps all constraints", "Pareto set"
DEFAULT, FOUND = "default", "recommended"

_LOG_FROM = 20
"""Values that span more than this factor stand on a log scale."""

_MARKS: dict[str, tuple[str, str, float, int]] = {
    # kind: colour, shape, opacity, size
    BREAKS: ("slo", "triangle-up", 0.3, 30),
    KEEPS: ("baseline", "circle", 0.55, 30),
    FRONT: ("current", "circle", 1.0, 60),
    DEFAULT: ("ink", "diamond", 1.0, 160),
    FOUND: ("decode", "M0,-1L0.2245,-0.309L0.9511,-0.309L0.3633,0.118L0.5878,0.809"
            "L0,0.382L-0.5878,0.809L-0.3633,0.118L-0.9511,-0.309L-0.2245,-0.309Z", 1.0, 320),
}  # fmt: skip


def trials_chart(report: SearchReport) -> Chart:
    """Return the trials: the first two objectives, or a single one over the trials' numbers."""
    objectives = report.objectives[:2]
    tried = [t for t in distinct(report.trials) if t.evaluation.infeasible is None]
    several = len(objectives) == 2
    title = "Trials and Pareto set" if several else f"{capitalised(objectives[0].title)} by trial"
    if not tried:
        return Chart("trials", title, {}, [], "No trial could be simulated.")
    kinds = _kinds(report, tried)
    rows = [_row(one, kinds[one.number], objectives) for one in tried]
    alt = _sentence(report, rows, objectives)
    layers = _layers(report, rows, objectives)
    spec = unit_chart(title, alt, rows, {"layer": layers})
    caption = (
        "On the traffic of the trials, where the best of many look better than they are. Filled "
        "triangles break a constraint."
    )
    left_out = len(report.trials) - len(tried)
    if left_out:
        caption += f" {left_out:,} trials are not shown: repeated, or not possible."
    return Chart("trials", title, spec, rows, alt, caption)


def _kinds(report: SearchReport, tried: list[Tried]) -> dict[int, str]:
    front = {one.number for one in report.explanation.front} if len(report.objectives) > 1 else ()
    kinds: dict[int, str] = {}
    for one in tried:
        if not one.candidate:
            kinds[one.number] = DEFAULT
        elif one.number in front:
            kinds[one.number] = FRONT
        else:
            kinds[one.number] = KEEPS if one.evaluation.meets else BREAKS
    return kinds


def _row(one: Tried, kind: str, objectives: list[Objective]) -> Row:
    values = {o.name: rounded(one.evaluation.objectives[o.name]) for o in objectives}
    return {"trial": one.number, "kind": kind, **values, "policy": told(one.candidate)}


def _found(report: SearchReport) -> Evaluation | None:
    chosen = report.judgement.chosen
    return None if chosen is None else chosen.tried.evaluation


def _layers(report: SearchReport, rows: list[Row], objectives: list[Objective]) -> list[Spec]:
    y = _axis(report, objectives[0], rows)
    several = len(objectives) == 2
    x = _axis(report, objectives[1], rows) if several else _trial_axis()
    tooltip = [
        {"field": "trial", "type": "quantitative"},
        {"field": "kind", "type": "nominal"},
        *({"field": o.name, "type": "quantitative", "title": o.title} for o in objectives),
        {"field": "policy", "type": "nominal"},
    ]
    layers: list[Spec] = []
    if several:
        layers.append(_front_line(x, y))
    found = _found(report)
    kinds = [kind for kind in _MARKS if any(row["kind"] == kind for row in rows)]
    if found is not None:
        kinds = [*(k for k in kinds if k != FOUND), FOUND]
    layers.append(
        {
            # In the order of kinds, so that what matters lies on top.
            "transform": [{"calculate": _order(kinds), "as": "z"}],
            "mark": {"type": "point", "filled": True, "clip": True},
            "encoding": {
                "x": x,
                "y": y,
                **_look(kinds),
                "order": {"field": "z", "type": "quantitative"},
                "tooltip": tooltip,
            },
        }
    )
    if found is not None:
        layers.append(_found_mark(report, found, objectives, x, y, kinds))
    return layers


def _order(kinds: list[str]) -> str:
    return f"indexof({kinds!r}, datum.kind)"


def _look(kinds: list[str]) -> Spec:
    looks = [_MARKS[kind] for kind in kinds]

    def channel(values: list[Any], **more: Any) -> Spec:
        scale = {"domain": kinds, "range": values}
        return {"field": "kind", "type": "nominal", "scale": scale, **more}

    return {
        "color": channel([colour(role) for role, _, _, _ in looks], legend={"title": None}),
        "shape": channel([shape for _, shape, _, _ in looks], legend={"title": None}),
        "opacity": channel([opacity for _, _, opacity, _ in looks], legend=None),
        "size": channel([size for _, _, _, size in looks], legend=None),
    }


def _front_line(x: Spec, y: Spec) -> Spec:
    return {
        "transform": [{"filter": f"datum.kind === '{FRONT}' || datum.kind === '{DEFAULT}'"},
                      {"filter": f"datum.kind === '{FRONT}'"}],
        "mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.6, "color": colour("current")},
        "encoding": {"x": x, "y": y, "order": {"field": x["field"], "type": "quantitative"}},
    }  # fmt: skip


def _found_mark(
    report: SearchReport,
    found: Evaluation,
    objectives: list[Objective],
    x: Spec,
    y: Spec,
    kinds: list[str],
) -> Spec:
    row: Row = {o.name: rounded(found.objectives[o.name]) for o in objectives}
    row |= {"trial": report.judgement.trial, "kind": FOUND, "policy": told(found.candidate)}
    return {
        "data": {"values": [row]},
        "mark": {"type": "point", "filled": True},
        "encoding": {"x": x, "y": y, **_look(kinds), "tooltip": [
            {"field": "kind", "type": "nominal"}, {"field": "policy", "type": "nominal"},
        ]},
    }  # fmt: skip


def _trial_axis() -> Spec:
    axis = {"title": "Trial", "grid": False, "tickMinStep": 1}
    return {"field": "trial", "type": "quantitative", "axis": axis, "scale": {"nice": True}}


def _axis(report: SearchReport, objective: Objective, rows: list[Row]) -> Spec:
    values = [row[objective.name] for row in rows]
    low, high = min(values), max(values)
    better = "more" if objective.direction == "maximize" else "less"
    title = f"{capitalised(objective.title)} ({report.unit(objective)}, {better} is better)"
    base: Spec = {"field": objective.name, "type": "quantitative"}
    if low > 0 and high > _LOG_FROM * low:
        axis = {"title": title, "values": log_ticks(low / 2, high * 2), "labelOverlap": True}
        axis["labelExpr"] = "format(datum.value, ',~r')"
        return {**base, "scale": {"type": "log"}, "axis": axis}
    return {**base, "scale": {"zero": False}, "axis": {"title": title}}


def _sentence(report: SearchReport, rows: list[Row], objectives: list[Objective]) -> str:
    first = objectives[0]
    unit = report.unit(first)
    kept = [row[first.name] for row in rows if row["kind"] != BREAKS]
    names = " against ".join(o.title for o in objectives)
    text = f"{capitalised(names)} of {len(rows):,} candidates"
    if kept:
        best = max(kept) if first.direction == "maximize" else min(kept)
        text += f"; the best that keeps all constraints has {objective_text(best, unit)}"
    default = next((row[first.name] for row in rows if row["kind"] == DEFAULT), None)
    if default is not None:
        text += f", the default {objective_text(default, unit)}"
    return f"{text}."
