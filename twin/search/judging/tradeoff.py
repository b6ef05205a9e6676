"""Time to first token against what a search wants, with the region that keeps the SLO."""

from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import Spec, colour, latency_unit, log_axis, log_domain, slo_layers
from twin.report.numbers import limit, percentile_name, seconds
from twin.report.slo import Slo, read_slo
from twin.search.evaluation import Evaluation
from twin.search.judging.chart import (
    BEST,
    BREAKS,
    DEFAULT,
    FOUND,
    KEEPS,
    MARKS,
    looks_of,
    size_of,
    value_axis,
)
from twin.search.judging.pareto import distinct
from twin.search.judging.report import SearchReport
from twin.search.judging.told import capitalised, objective_text, told
from twin.search.objectives import Objective

_TTFT = "p99_ttft_s"
_SHORTEST_S = 1e-5


def tradeoff_chart(report: SearchReport) -> Chart | None:
    """Return TTFT on a log scale against the first objective; None: TTFT is the only one.

    Trials that keep all constraints, those that break one, the default, and the best one or the
    recommended policy are told apart by colour and shape. x is the SLO's own percentile of TTFT,
    lost requests counted, where the SLO limits it; else P99.
    """
    objective = next((o for o in report.objectives if o.name != _TTFT), None)
    if objective is None:
        return None
    slo = read_slo(report.problem.file.slo)
    rows = _rows(report, objective, slo)
    title = f"{capitalised(objective.title)} against TTFT"
    if not rows:
        return Chart("tradeoff", title, {}, [], "No trial has ended that could be shown.")
    unit, factor = latency_unit(max(row["ttft_s"] for row in rows))
    for row in rows:
        row[f"ttft_{unit}"] = rounded(row.pop("ttft_s") * factor)
    values = [row[f"ttft_{unit}"] for row in rows]
    known = [] if slo.ttft_s is None else [slo.ttft_s * factor / 1.2, slo.ttft_s * factor * 1.2]
    domain = log_domain(min(values + known), max(values + known))
    alt = _sentence(report, rows, objective, slo)
    layers = _region(slo, factor, domain) + _points(report, rows, objective, (unit, slo, domain))
    return Chart(
        "tradeoff",
        title,
        unit_chart(title, alt, rows, {"layer": layers}),
        rows,
        alt,
        _caption(report, rows, slo),
    )


def _rows(report: SearchReport, objective: Objective, slo: Slo) -> list[Row]:
    rows: list[Row] = []
    chosen, best = report.judgement.chosen, report.judgement.best
    star = report.judgement.trial if chosen is not None else best and best.number
    for tried in distinct(report.trials):
        evaluation = tried.evaluation
        ttft_s, value = ttft_of(evaluation, slo), evaluation.objectives.get(objective.name)
        if ttft_s is None or value is None:
            continue
        kind = KEEPS if evaluation.meets else BREAKS
        if not tried.candidate:
            kind = DEFAULT
        elif chosen is not None and tried.candidate == chosen.tried.candidate:
            kind = FOUND
        elif tried.number == star:
            kind = BEST  # what is recommended may be less of it, which no trial was
        rows.append(
            {
                "trial": tried.number,
                "kind": kind,
                "ttft_s": max(ttft_s, _SHORTEST_S),
                objective.name: rounded(value),
                "policy": told(tried.candidate),
            }
        )
    return rows


def ttft_of(evaluation: Evaluation, slo: Slo) -> float | None:
    """Return the time to first token that the SLO judges a trial by, seconds; without one, P99."""
    if slo.ttft_s is not None:
        missed = evaluation.violations.get("ttft_s")
        return None if missed is None else slo.ttft_s * (1 + missed)
    value: float | None = (evaluation.figures.get("ttft_s") or {}).get("p99")
    return value


def _name(slo: Slo) -> str:
    return percentile_name(slo.percentile if slo.ttft_s is not None else 99)


def _region(slo: Slo, factor: float, domain: tuple[float, float]) -> list[Spec]:
    if slo.ttft_s is None:
        return []
    at = slo.ttft_s * factor
    shade: Spec = {
        "data": {"values": [{}]},
        "mark": {"type": "rect", "color": colour("decode"), "opacity": 0.1},
        "encoding": {"x": {"datum": domain[0], "type": "quantitative"}, "x2": {"datum": at}},
    }
    return [shade, *slo_layers("x", at, f"SLO {limit(slo.ttft_s)}", domain)]


def _points(
    report: SearchReport,
    rows: list[Row],
    objective: Objective,
    axis: tuple[str, Slo, tuple[float, float]],
) -> list[Spec]:
    unit, slo, domain = axis
    x = log_axis(f"ttft_{unit}", f"{_name(slo)} time to first token ({unit})", domain)
    y = value_axis(report, objective, rows)
    kinds = [kind for kind in MARKS if any(row["kind"] == kind for row in rows)]
    tooltip = [
        {"field": "trial", "type": "quantitative"},
        {"field": "kind", "type": "nominal"},
        {"field": f"ttft_{unit}", "type": "quantitative", "title": f"TTFT ({unit})"},
        {"field": objective.name, "type": "quantitative", "title": objective.title},
        {"field": "policy", "type": "nominal"},
    ]
    # One layer a kind, in order, so that what matters lies on top.
    return [
        {
            "transform": [{"filter": f"datum.kind === '{kind}'"}],
            "mark": {"type": "point", "filled": True, **size_of(kind, len(rows))},
            "encoding": {"x": x, "y": y, **looks_of(kinds), "tooltip": tooltip},
        }
        for kind in kinds
    ]


def _caption(report: SearchReport, rows: list[Row], slo: Slo) -> str:
    parts = ["On the traffic of the trials, where the best of many look better than they are."]
    if slo.ttft_s is not None:
        parts.append("Shaded: keeps the TTFT limit.")
    left_out = len(report.trials) + report.pruned - len(rows)
    if left_out:
        parts.append(f"{left_out:,} trials are not shown: stopped early, repeated, not possible.")
    return " ".join(parts)


def _sentence(report: SearchReport, rows: list[Row], objective: Objective, slo: Slo) -> str:
    text = f"{capitalised(objective.title)} against {_name(slo)} TTFT of {len(rows):,} candidates"
    for kind in (FOUND, BEST, DEFAULT):
        row = next((row for row in rows if row["kind"] == kind), None)
        if row is None:
            continue
        field = next(name for name in row if name.startswith("ttft_"))
        at_s = row[field] / (1e3 if field == "ttft_ms" else 1)
        value = objective_text(row[objective.name], report.unit(objective))
        text += f"; the {kind} one has {value} at {seconds(at_s)}"
    return f"{text}."
