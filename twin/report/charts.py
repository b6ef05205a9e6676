"""Latency charts as Vega-Lite specs: cumulative distributions, TTFT over arrival time."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from twin.engine.result import Floats, SimulationResult
from twin.report.latencies import cdf, percentile_of, request_latencies
from twin.report.numbers import limit, percent, seconds
from twin.report.style import (
    BASELINE_DASH,
    HEIGHT,
    SCHEMA,
    WIDTH,
    Spec,
    colour,
    latency_unit,
    log_axis,
    log_domain,
    slo_layers,
    time_axis,
)

MAX_MARKS = 2_000
"""Most marks a chart draws."""

# The shortest latency a log axis shows: gaps of 0 (two tokens delivered at once) sit there.
_SHORTEST_S = 1e-5

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart without its theme (see `style.themed`).

    Attributes:
        name: short key, unique in a report.
        title: what it shows.
        spec: the Vega-Lite spec, data inside; empty when there is nothing to draw.
        rows: the same data as tidy rows.
        alt: one sentence for those who do not see it.
        caption: what was binned or left out; may be empty.
    """

    name: str
    title: str
    spec: Spec
    rows: list[Row]
    alt: str
    caption: str = ""


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
    heading = f"{title}: cumulative distribution"
    curves = {
        run: cdf(values, MAX_MARKS // (6 * max(1, len(runs)))) for run, values in runs.items()
    }
    curves = {run: curve for run, curve in curves.items() if curve[0].size}
    if not curves:
        return Chart(name, heading, {}, [], f"No {title} was measured.")
    low = min(max(float(x[0]), _SHORTEST_S) for x, _ in curves.values())
    high = max(max(float(x[-1]), _SHORTEST_S) for x, _ in curves.values())
    if slo_s is not None:
        low, high = min(low, slo_s), max(high, slo_s * 1.2)
    unit, factor = latency_unit(high)
    rows = [
        {
            "run": run,
            f"latency_{unit}": rounded(max(value, _SHORTEST_S) * factor),
            "percentile": rounded(100 * share, 6),
            "nines": rounded(-math.log10(1 - share)),
        }
        for run, (x, p) in curves.items()
        for value, share in zip(x.tolist(), p.tolist(), strict=True)
    ]
    domain = log_domain(low * factor, high * factor)
    layers = [_cdf_line(title, unit, list(curves), domain, rows)]
    if slo_s is not None:
        layers += slo_layers("x", slo_s * factor, f"{slo_name} {limit(slo_s)}", domain)
    alt = _cdf_sentence(title, runs, slo_s, slo_name)
    spec = unit_chart(heading, alt, rows, {"layer": layers})
    caption = "Each curve stops where fewer than 10 values remain above it."
    return Chart(name, heading, spec, rows, alt, caption)


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
    title: str, runs: Mapping[str, Floats], slo_s: float | None, slo_name: str
) -> str:
    parts = [
        f"{run}: P50 {seconds(percentile_of(v, 50))}, P99 {seconds(percentile_of(v, 99))}"
        for run, v in runs.items()
    ]
    tail = f"; the {slo_name} is {limit(slo_s)}" if slo_s is not None else ""
    return f"Cumulative distribution of {title}; {'; '.join(parts)}{tail}."


def ttft_over_time(result: SimulationResult, *, slo_s: float | None = None) -> Chart:
    """Return TTFT (log scale) over arrival time, one point a request, misses as triangles.

    Of many requests the slowest ones are all kept and the rest is thinned evenly.
    """
    title = "TTFT over arrival time"
    ttft = request_latencies(result.requests).ttft_s
    known = np.flatnonzero(np.isfinite(ttft))
    if not known.size:
        return Chart("ttft_time", title, {}, [], "No request got a first token.")
    kept = _slowest_and_some(ttft, known, MAX_MARKS * 3 // 4)
    highest = max(float(ttft[known].max()), 1.2 * (slo_s or 0.0))
    lowest = min(max(float(ttft[known].min()), _SHORTEST_S), slo_s or math.inf)
    unit, factor = latency_unit(highest)
    field = f"ttft_{unit}"
    rows = [
        {
            "arrival_s": rounded(float(result.requests.arrival_s[i]), 6),
            field: rounded(max(float(ttft[i]), _SHORTEST_S) * factor),
            "outcome": "misses SLO" if slo_s is not None and ttft[i] > slo_s else "first token",
            "request": int(i),
        }
        for i in kept
    ]
    domain = log_domain(lowest * factor, max(highest, _SHORTEST_S) * factor)
    layers = [_ttft_points(field, unit, domain, slo_s is not None)]
    if slo_s is not None:
        layers += slo_layers("y", slo_s * factor, f"SLO {limit(slo_s)}", domain)
    alt = _ttft_sentence(ttft[known], slo_s)
    caption = "Every request with a first token."
    if kept.size < known.size:
        caption = (
            f"{kept.size:,} of {known.size:,} requests: the slowest 1 % are all shown, "
            "the others thinned evenly."
        )
    spec = unit_chart(title, alt, rows, {"layer": layers})
    return Chart("ttft_time", title, spec, rows, alt, caption)


def _ttft_points(field: str, unit: str, domain: tuple[float, float], judged: bool) -> Spec:
    outcomes = ["first token", "misses SLO"]
    legend = {"title": None} if judged else None
    return {
        "mark": {"type": "point", "filled": True, "opacity": 0.7, "size": 30, "clip": True},
        "encoding": {
            "x": time_axis("arrival_s", "Arrival since start (s)"),
            "y": log_axis(field, f"TTFT ({unit})", domain),
            "color": {
                "field": "outcome",
                "type": "nominal",
                "scale": {"domain": outcomes, "range": [colour("current"), colour("slo")]},
                "legend": legend,
            },
            "shape": {
                "field": "outcome",
                "type": "nominal",
                "scale": {"domain": outcomes, "range": ["circle", "triangle-up"]},
                "legend": legend,
            },
            "tooltip": [
                {"field": "request", "type": "quantitative"},
                {"field": "arrival_s", "type": "quantitative", "title": "arrival (s)"},
                {"field": field, "type": "quantitative", "title": f"TTFT ({unit})"},
            ],
        },
    }


def _ttft_sentence(ttft: Floats, slo_s: float | None) -> str:
    text = (
        f"TTFT of {ttft.size:,} requests over their arrival, from "
        f"{seconds(float(ttft.min()))} to {seconds(float(ttft.max()))}"
    )
    if slo_s is not None:
        text += f"; {percent(float((ttft > slo_s).mean()))} miss the SLO of {limit(slo_s)}"
    return f"{text}."


def _slowest_and_some(values: Floats, known: Any, most: int) -> Any:
    """Return at most `most` of `known`: the slowest 1 % (at most half) and evenly spaced others."""
    if known.size <= most:
        return known
    slow = min(most // 2, max(1, known.size // 100))
    order = known[np.argsort(values[known], kind="stable")]
    others = np.sort(order[:-slow])
    picks = np.linspace(0, others.size - 1, most - slow).astype(np.int64)
    return np.sort(np.concatenate((order[-slow:], others[picks])))


def unit_chart(title: str, alt: str, rows: list[Row], body: Spec) -> Spec:
    """Return a full spec of one view with its data, size, title and description."""
    return {
        "$schema": SCHEMA,
        "title": title,
        "description": alt,
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": rows},
        **body,
    }


def rounded(value: float, digits: int = 5) -> float:
    """Return `value` to a few significant digits: what a chart can show, and smaller files."""
    return float(f"{value:.{digits}g}")
