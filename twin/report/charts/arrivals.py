"""TTFT over arrival time as a Vega-Lite spec."""

import math
from typing import Any

import numpy as np

from twin.engine.result import Floats, SimulationResult
from twin.report.charts.chart import MAX_MARKS, Chart, rounded, unit_chart
from twin.report.charts.latency import SHORTEST_S
from twin.report.charts.style import (
    Spec,
    colour,
    latency_unit,
    log_axis,
    log_domain,
    slo_layers,
    time_axis,
)
from twin.report.latencies import request_latencies
from twin.report.numbers import limit, percent, seconds


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
    lowest = min(max(float(ttft[known].min()), SHORTEST_S), slo_s or math.inf)
    unit, factor = latency_unit(highest)
    field = f"ttft_{unit}"
    rows = [
        {
            "arrival_s": rounded(float(result.requests.arrival_s[i]), 6),
            field: rounded(max(float(ttft[i]), SHORTEST_S) * factor),
            "outcome": "misses SLO" if slo_s is not None and ttft[i] > slo_s else "first token",
            "request": int(i),
        }
        for i in kept
    ]
    domain = log_domain(lowest * factor, max(highest, SHORTEST_S) * factor)
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
