"""Charts of a judgement with a row a knob or objective: gains, importance, sensitivity."""

from collections.abc import Sequence

from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import Spec, colour
from twin.report.numbers import percent
from twin.search.judging.confirm import Confirmation
from twin.search.judging.report import SearchReport
from twin.search.judging.told import capitalised, title_of, told_alike, told_gain

MOST_KNOBS = 12
_ROW_HEIGHT = 22
_FAR_PCT = 100
"""Largest gain or loss that a linear axis shows well."""


def gains_chart(one: Confirmation | None) -> Chart:
    """Return gains with their intervals, and what forecast error alone may feign."""
    title = "Gain over the default on held-out traffic"
    gains = [] if one is None else [g for g in one.gains if g.paired.relative is not None]
    if one is None or not gains:
        return Chart("gains", title, {}, [], "No candidate was run again beside the default.")
    rows: list[Row] = [
        {
            "objective": capitalised(title_of(gain.objective)),
            "gain_pct": rounded(100 * (gain.paired.relative or 0.0)),
            "low_pct": rounded(100 * _known(gain.paired.low, gain.paired.relative)),
            "high_pct": rounded(100 * _known(gain.paired.high, gain.paired.relative)),
            "error_pct": rounded(100 * gain.threshold),
            "minus_error_pct": rounded(-100 * gain.threshold),
            "verdict": gain.verdict,
        }
        for gain in gains
    ]
    alt = "; ".join(f"{told_gain(gain)}, {gain.why or gain.verdict}" for gain in gains) + "."
    caption = (
        f"Point: gain over {gains[0].paired.pairs} {one.over}, paired. Line: its 95 % interval. "
        "Band: what forecast error alone may feign. A gain counts beyond both."
    )
    spec = unit_chart(title, capitalised(alt), rows, {"layer": _gain_layers(rows)})
    spec["height"] = 2 * _ROW_HEIGHT * len(rows)
    return Chart("gains", title, spec, rows, capitalised(alt), caption)


def _known(value: float | None, instead: float | None) -> float:
    return value if value is not None else instead or 0.0


def _gain_layers(rows: list[Row]) -> list[Spec]:
    y: Spec = {
        "field": "objective",
        "type": "nominal",
        "sort": [row["objective"] for row in rows],
        "axis": {"title": None, "domain": False, "ticks": False, "labelLimit": 260},
    }
    axis = {"title": "Gain over the default (%, more is better)"}

    def x(field: str) -> Spec:
        return {"field": field, "type": "quantitative", "axis": axis, "scale": {"nice": True}}

    tooltip = [
        {"field": name, "type": "quantitative"}
        for name in ("gain_pct", "low_pct", "high_pct", "error_pct")
    ]
    zero = {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "aria": False, "color": colour("ink")},
        "encoding": {"x": {"datum": 0, "type": "quantitative"}},
    }
    return [
        {
            "mark": {"type": "bar", "opacity": 0.25, "color": colour("baseline"), "height": 26},
            "encoding": {"y": y, "x": x("minus_error_pct"), "x2": {"field": "error_pct"}},
        },
        zero,
        {
            "mark": {"type": "rule", "aria": False, "strokeWidth": 2.5, "color": colour("current")},
            "encoding": {"y": y, "x": x("low_pct"), "x2": {"field": "high_pct"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 90, "color": colour("current")},
            "encoding": {"y": y, "x": x("gain_pct"), "tooltip": tooltip},
        },
    ]


def importance_chart(report: SearchReport) -> Chart:
    """Return each knob's share of the first objective's variation over trials."""
    objective = report.objectives[0]
    title = f"What {objective.title} goes with"
    shares = report.explanation.importance.get(objective.name, ())[:MOST_KNOBS]
    if not shares:
        spread = report.explanation.alike.get(objective.name)
        why = "Too few trials to tell what matters."
        alt = why if spread is None else told_alike(objective, spread)
        return Chart("importance", title, {}, [], alt)
    rows: list[Row] = [{"knob": s.key, "share_pct": rounded(100 * s.share, 3)} for s in shares]
    alt = f"Most goes with {shares[0].key}: {percent(shares[0].share)} of the variance of ranks."
    caption = (
        "Share of the variance of ranks between a knob's levels, less what chance gives (epsilon "
        "squared), one knob at a time. Knobs that moved together share it."
    )
    bar: Spec = {
        "mark": {"type": "bar", "color": colour("current"), "height": 12},
        "encoding": {"y": _knobs([s.key for s in shares]), "x": _share_axis()},
    }
    spec = unit_chart(title, alt, rows, bar)
    spec["height"] = _ROW_HEIGHT * len(rows)
    return Chart("importance", title, spec, rows, alt, caption)


def _share_axis() -> Spec:
    axis = {"title": "Share of the variance of ranks (%)"}
    return {"field": "share_pct", "type": "quantitative", "axis": axis}


def _knobs(order: Sequence[str], field: str = "knob") -> Spec:
    axis = {"title": None, "domain": False, "ticks": False, "labelLimit": 320}
    return {"field": field, "type": "nominal", "sort": list(order), "axis": axis}


def sensitivity_chart(report: SearchReport) -> Chart:
    """Return what turning one knob does to the first objective, a row a neighbour."""
    objective = report.objectives[0]
    name = "the recommended policy" if report.explanation.around else "the default"
    title = f"One knob turned, from {name}"
    rows: list[Row] = [
        {
            "turned": f"{one.key} = {one.value}",
            "gain_pct": rounded(100 * (one.relative[objective.name] or 0.0), 4),
            "constraints": "breaks one" if one.broken else "keeps all",
        }
        for one in report.explanation.neighbours
        if one.infeasible is None and one.relative.get(objective.name) is not None
    ]
    if not rows:
        return Chart("sensitivity", title, {}, [], "No neighbour could be simulated.")
    worst = min(rows, key=lambda row: row["gain_pct"])
    alt = (
        f"{capitalised(objective.title)} of {len(rows)} neighbours; the most is lost with "
        f"{worst['turned']}: {worst['gain_pct']:+.3g} %."
    )
    caption = "On the traffic of the trials. Above 0: better than the policy itself."
    left_out = len(report.explanation.neighbours) - len(rows)
    if left_out:
        caption += f" {left_out} neighbours are not possible."
    spec = unit_chart(title, alt, rows, {"layer": _sensitivity_layers(rows, objective.title)})
    spec["height"] = 16 * len(rows)
    return Chart("sensitivity", title, spec, rows, alt, caption)


def _sensitivity_layers(rows: list[Row], title: str) -> list[Spec]:
    kinds = [k for k in ("keeps all", "breaks one") if any(r["constraints"] == k for r in rows)]
    looks = {"keeps all": ("current", "circle"), "breaks one": ("slo", "triangle-up")}
    legend = {"title": "Constraints"} if len(kinds) > 1 else None

    def channel(values: list[object]) -> Spec:
        scale = {"domain": kinds, "range": values}
        return {"field": "constraints", "type": "nominal", "scale": scale, "legend": legend}

    y = _knobs([row["turned"] for row in rows], "turned")
    y["axis"]["grid"] = True
    axis = {"title": f"{capitalised(title)}: gain (%, more is better)", "tickCount": 6}
    far = max(abs(row["gain_pct"]) for row in rows) > _FAR_PCT
    # Far-off values would press all others against 0.
    scale = {"type": "symlog", "constant": 10} if far else {"padding": 8}
    return [
        {
            "data": {"values": [{}]},
            "mark": {"type": "rule", "aria": False, "color": colour("ink")},
            "encoding": {"x": {"datum": 0, "type": "quantitative"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": {
                "y": y,
                "x": {"field": "gain_pct", "type": "quantitative", "axis": axis, "scale": scale},
                "color": channel([colour(looks[k][0]) for k in kinds]),
                "shape": channel([looks[k][1] for k in kinds]),
                "tooltip": [
                    {"field": "turned", "type": "nominal"},
                    {"field": "gain_pct", "type": "quantitative"},
                    {"field": "constraints", "type": "nominal"},
                ],
            },
        },
    ]
