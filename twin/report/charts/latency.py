"""Cumulative distributions of latencies as Vega-Lite specs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from twin.engine.result import Floats
from twin.report.charts.chart import MAX_MARKS, Chart, Row, rounded, unit_chart
from twin.report.charts.style import (
    BASELINE_DASH,
    Spec,
    colour,
    latency_unit,
    log_axis,
    log_domain,
    slo_layers,
)
from twin.report.latencies import cdf, percentile_of
from twin.report.numbers import limit, seconds

SHORTEST_S = 1e-5
"""The shortest latency a log axis shows: gaps of 0 (two tokens delivered at once) sit there."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The cumulative distribution of a latency, thinned to what a chart can show.

    Attributes:
        x_s: quantiles, seconds, ascending.
        share: of the values that lie at or below each, in [0, 1).
        p50_s, p99_s: percentiles of all values; None: there are no values.
    """

    x_s: tuple[float, ...]
    share: tuple[float, ...]
    p50_s: float | None
    p99_s: float | None


def curve_of(values: Floats, points: int = MAX_MARKS // 12) -> Curve:
    """Return the curve of some latencies in seconds, at most `points` of it; NaN are left out."""
    x, p = cdf(values, points)
    return Curve(
        tuple(x.tolist()), tuple(p.tolist()), percentile_of(values, 50), percentile_of(values, 99)
    )


def latency_cdf(
    name: str,
    title: str,
    runs: Mapping[str, Floats],
    *,
    slo_s: float | None = None,
    slo_name: str = "SLO",
) -> Chart:
    """Return the cumulative distribution of a latency for one run, or a baseline and a run.

    Args:
        name: key of the chart.
        title: the latency's short name, as in `TTFT`.
        runs: seconds by run name; of two, the first is the baseline (grey, dashed).
        slo_s: the limit to mark.
        slo_name: how to call it, where the limit is on another figure than this latency.

    x is the latency on a log scale, y the percentile on -log10(1 - p), so that P90, P99 and
    P99.9 are equally far apart.
    """
    points = MAX_MARKS // (6 * max(1, len(runs)))
    curves = {run: curve_of(values, points) for run, values in runs.items()}
    return latency_curves(name, title, curves, slo_s=slo_s, slo_name=slo_name)


def latency_curves(
    name: str,
    title: str,
    curves: Mapping[str, Curve],
    *,
    slo_s: float | None = None,
    slo_name: str = "SLO",
    error: float | None = None,
) -> Chart:
    """Return what `latency_cdf` does, of curves that are there already.

    Args:
        name, title, slo_s, slo_name: as there.
        curves: by run name; of two, the first is the baseline.
        error: relative error of the last run's forecast, drawn as a band from x/(1+e) to
            x·(1+e); None: none is known.
    """
    heading = f"{title}: cumulative distribution"
    drawn = {run: curve for run, curve in curves.items() if curve.x_s}
    if not drawn:
        return Chart(name, heading, {}, [], f"No {title} was measured.")
    spread = 1 + (error or 0.0)
    low = min(max(curve.x_s[0], SHORTEST_S) for curve in drawn.values()) / spread
    high = max(max(curve.x_s[-1], SHORTEST_S) for curve in drawn.values()) * spread
    if slo_s is not None:
        low, high = min(low, slo_s), max(high, slo_s * 1.2)
    unit, factor = latency_unit(high)
    rows = _cdf_rows(drawn, unit, factor, error)
    domain = log_domain(low * factor, high * factor)
    layers = [_cdf_line(title, unit, list(drawn), domain, rows)]
    if error is not None:
        layers.insert(0, _cdf_band(title, unit, domain, list(drawn)[-1]))
    if slo_s is not None:
        layers += slo_layers("x", slo_s * factor, f"{slo_name} {limit(slo_s)}", domain)
    alt = _cdf_sentence(title, drawn, slo_s, slo_name)
    spec = unit_chart(heading, alt, rows, {"layer": layers})
    caption = "Each curve stops where fewer than 10 values remain above it."
    return Chart(name, heading, spec, rows, alt, caption)


def _cdf_rows(
    curves: Mapping[str, Curve], unit: str, factor: float, error: float | None
) -> list[Row]:
    last = list(curves)[-1]
    rows: list[Row] = []
    for run, curve in curves.items():
        for value, share in zip(curve.x_s, curve.share, strict=True):
            x = max(value, SHORTEST_S) * factor
            row: Row = {
                "run": run,
                f"latency_{unit}": rounded(x),
                "percentile": rounded(100 * share, 6),
                "nines": rounded(-math.log10(1 - share)),
            }
            if error is not None:
                wide = 1 + (error if run == last else 0.0)
                row |= {f"low_{unit}": rounded(x / wide), f"high_{unit}": rounded(x * wide)}
            rows.append(row)
    return rows


def _cdf_band(title: str, unit: str, domain: tuple[float, float], run: str) -> Spec:
    """The forecast's error beneath the line: 20 % fill, no outline."""
    return {
        "transform": [{"filter": {"field": "run", "equal": run}}],
        "mark": {
            "type": "area",
            "orient": "horizontal",
            "color": colour("current"),
            "opacity": 0.2,
            "clip": True,
        },
        "encoding": {
            "x": log_axis(f"low_{unit}", f"{title} ({unit})", domain),
            "x2": {"field": f"high_{unit}"},
            "y": {"field": "nines", "type": "quantitative"},
        },
    }


def _cdf_line(
    title: str, unit: str, runs: list[str], domain: tuple[float, float], rows: list[Row]
) -> Spec:
    roles = ["baseline", "current"][-len(runs) :]
    shown = None if len(runs) == 1 else {"title": None}
    top = max(row["nines"] for row in rows)
    y_axis = {
        "title": "Percentile of values",
        "values": [0.30103, 1, 2, 3, 4],
        "labelExpr": (
            "datum.value < 0.9 ? 'P50' : datum.value < 1.9 ? 'P90' : "
            "datum.value < 2.9 ? 'P99' : datum.value < 3.9 ? 'P99.9' : 'P99.99'"
        ),
    }
    return {
        "mark": {"type": "line", "strokeWidth": 2, "clip": True},
        "encoding": {
            "x": log_axis(f"latency_{unit}", f"{title} ({unit})", domain),
            "y": {
                "field": "nines",
                "type": "quantitative",
                "scale": {"domain": [0, max(1.0, top)], "nice": False},
                "axis": y_axis,
            },
            "color": {
                "field": "run",
                "type": "nominal",
                "scale": {"domain": runs, "range": [colour(role) for role in roles]},
                "legend": shown,
            },
            "strokeDash": {
                "field": "run",
                "type": "nominal",
                "scale": {"domain": runs, "range": [BASELINE_DASH, [1, 0]][-len(runs) :]},
                "legend": shown,
            },
            "order": {"field": "nines", "type": "quantitative"},
            "tooltip": [
                {"field": "run", "type": "nominal"},
                {"field": f"latency_{unit}", "type": "quantitative", "title": f"{title} ({unit})"},
                {"field": "percentile", "type": "quantitative", "format": ".4~f"},
            ],
        },
    }


def _cdf_sentence(
    title: str, curves: Mapping[str, Curve], slo_s: float | None, slo_name: str
) -> str:
    parts = [
        f"{run}: P50 {seconds(curve.p50_s)}, P99 {seconds(curve.p99_s)}"
        for run, curve in curves.items()
    ]
    tail = f"; the {slo_name} is {limit(slo_s)}" if slo_s is not None else ""
    return f"Cumulative distribution of {title}; {'; '.join(parts)}{tail}."
