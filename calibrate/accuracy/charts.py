"""Residual plots as Vega-Lite specs."""

import math
from collections.abc import Callable, Sequence

from calibrate.accuracy.groups import is_saturated
from calibrate.accuracy.predict import Prediction
from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import colour, log_axis, log_domain

_BAND_PCT = {"TPOT": 5, "TTFT": 12}
_WIDEST_PCT = 60.0

Metric = tuple[str, Callable[[Prediction], float], Callable[[Prediction], float]]

METRICS: tuple[Metric, ...] = (
    ("TPOT", lambda p: p.tpot_error, lambda p: p.row.tpot_s),
    ("TTFT", lambda p: p.ttft_error, lambda p: p.row.ttft_s),
)


def residuals(name: str, title: str, predictions: Sequence[Prediction], metric: Metric) -> Chart:
    """Return signed errors over the measured value, one mark a row.

    Args:
        name: key of the chart.
        title: what the rows are.
        predictions: those without a prediction are left out.
        metric: what is judged.

    Saturated rows are hollow. Errors beyond ±60 % stand at the edge.
    """
    short, error_of, measured_of = metric
    rows: list[Row] = [
        {
            "group": " ".join((p.row.engine, p.row.model.split("/")[-1])),
            "measured_ms": rounded(1e3 * measured_of(p)),
            "error_pct": rounded(100 * error_of(p), 4),
            "shown_pct": max(-_WIDEST_PCT, min(_WIDEST_PCT, rounded(100 * error_of(p), 4))),
            "saturated": is_saturated(p),
            "id": p.row.row_id,
        }
        for p in predictions
        if not p.why_not and math.isfinite(error_of(p))
    ]
    heading = f"{short}: error over the measured value, {title}"
    if not rows:
        return Chart(name, heading, {}, [], "No row was predicted.")
    values = [row["measured_ms"] for row in rows]
    domain = log_domain(min(values), max(values))
    band = _BAND_PCT[short]
    inside = sum(abs(row["error_pct"]) <= band for row in rows)
    alt = f"{inside} of {len(rows)} rows lie within ±{band} % of the measured {short}."
    y = {
        "field": "shown_pct",
        "type": "quantitative",
        "scale": {"domain": [-_WIDEST_PCT, _WIDEST_PCT]},
        "axis": {"title": f"{short} error (%)", "tickCount": 9},
    }
    points = {
        "mark": {"type": "point", "size": 26, "strokeWidth": 1.2},
        "encoding": {
            "x": log_axis("measured_ms", f"measured {short} (ms)", domain),
            "y": y,
            "color": {"field": "group", "type": "nominal", "legend": {"title": None, "columns": 3}},
            "fillOpacity": {"condition": {"test": "datum.saturated", "value": 0}, "value": 0.5},
            "fill": {"field": "group", "type": "nominal", "legend": None},
            "tooltip": [{"field": f} for f in ("id", "measured_ms", "error_pct")],
        },
    }
    rule = {
        "mark": {"type": "rule", "aria": False, "strokeWidth": 1, "color": colour("ink")},
        "encoding": {"y": {"datum": 0}},
    }
    limits = {
        "mark": {
            "type": "rule",
            "aria": False,
            "strokeDash": [4, 4],
            "color": colour("ink"),
            "opacity": 0.6,
        },
        "data": {"values": [{"at": band}, {"at": -band}]},
        "encoding": {"y": {"field": "at", "type": "quantitative"}},
    }
    body = {"layer": [rule, limits, points]}
    return Chart(name, heading, unit_chart(heading, alt, rows, body), rows, alt)
