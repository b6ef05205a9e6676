"""What the prefix cache found and what preemptions cost over time; whose pool a capacity is."""

import math
from dataclasses import replace

import numpy as np

from twin.caching.comparison import CacheComparison
from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import BASELINE_DASH, Spec, colour, time_axis
from twin.report.numbers import count, percent, seconds
from twin.telemetry.pool.history import PoolHistory

_EMPTY = "No step ran in this window."
_POOL_DASH = [2, 2]


def hits_over_time(history: PoolHistory | None) -> Chart:
    """Return the prefix cache's hit rate by interval; gaps where nobody was admitted."""
    name, title = "prefix_hits", "Prefix-cache hit rate"
    if history is None:
        return Chart(name, title, {}, [], _EMPTY)
    queries, hits = history.queries_tokens.tolist(), history.hits_tokens.tolist()
    total, found = sum(queries), sum(hits)
    if not total:
        return Chart(name, title, {}, [], "No prompt was looked up: the prefix cache is off.")
    rows: list[Row] = [
        {"t_s": t, "t_end_s": end, "queries_tokens": asked, "hits_tokens": hit}
        | {"hit_pct": rounded(100 * hit / asked)}
        for t, end, asked, hit in zip(*_borders(history), queries, hits, strict=True)
        if asked
    ]
    rate = found / total
    alt = (
        f"Prefix-cache hit rate by interval; over the whole run {percent(rate)} of "
        f"{count(total)} prompt tokens looked up were found."
    )
    caption = (
        f"Tokens found of those looked up by first admissions in {history.edges_s.size - 1} "
        f"intervals of {_width(history)}; none where nobody was admitted. Dashed: the whole run, "
        f"{percent(rate)}."
    )
    spec = unit_chart(title, alt, rows, {"layer": _hit_layers(rate, _time(history))})
    return Chart(name, title, spec, rows, alt, caption)


def preemptions_over_time(history: PoolHistory | None) -> Chart:
    """Return what the preemptions of each interval cost, a triangle an interval."""
    name, title = "preemption_cost", "Preemptions and what they cost"
    if history is None:
        return Chart(name, title, {}, [], _EMPTY)
    if not history.losses:
        return Chart(name, title, {}, [], "No request was preempted.")
    rows = _costs(history)
    alt = (
        f"Seconds of GPU time to recompute what {count(len(history.losses))} preemptions lost, by "
        f"the interval in which they happened: {seconds(history.recomputed_s)} in all, for "
        f"{count(history.recomputed_tokens)} tokens."
    )
    caption = (
        f"▲: the preemptions of an interval of {_width(history)}, at the GPU time that their "
        "tokens took a second time: each step less the same step without them."
    )
    spec = unit_chart(title, alt, rows, _cost_body(_time(history)))
    return Chart(name, title, spec, rows, alt, caption)


def with_pool_marked(chart: Chart, found: CacheComparison, label: str) -> Chart:
    """Return a chart of rates over capacity with a rule at the size of the GPU's own pool.

    Args:
        chart: of `twin.report.charts.cache`.
        found: what it shows; its question names a pool that is among the sizes.
        label: what stands beside the rule.
    """
    blocks = found.pool_blocks
    if not chart.spec or blocks not in found.question.capacities_blocks:
        return chart
    num_bytes = found.capacity_bytes(found.question.capacities_blocks.index(blocks))
    at = float(blocks) if num_bytes is None else rounded(num_bytes / 1e9)
    shown = [row["capacity_blocks"] for row in chart.rows]
    right = blocks * blocks > min(shown) * max(shown)
    x = {"datum": at, "type": "quantitative"}
    once: Spec = {"values": [{}]}
    words: Spec = {
        "type": "text",
        "text": label,
        "align": "right" if right else "left",
        "dx": -5 if right else 5,
        "baseline": "bottom",
        "y": {"expr": "height - 4"},
        "color": colour("ink"),
    }
    rule = {
        "type": "rule",
        "aria": False,
        "color": colour("ink"),
        "strokeDash": _POOL_DASH,
        "strokeWidth": 1.5,
    }
    layers = [
        {"data": once, "mark": rule, "encoding": {"x": x}},
        {"data": once, "mark": words, "encoding": {"x": x}},
    ]
    spec = {**chart.spec, "layer": [*chart.spec["layer"], *layers]}
    return replace(chart, spec=spec)


def _borders(history: PoolHistory) -> tuple[list[float], list[float]]:
    edges = [rounded(float(t), 6) for t in history.edges_s]
    return edges[:-1], edges[1:]


def _width(history: PoolHistory) -> str:
    return seconds(float(history.edges_s[1] - history.edges_s[0]))


def _time(history: PoolHistory) -> Spec:
    """Return the encoding of time over the whole run, so that charts stand under each other."""
    ends = [rounded(float(t), 6) for t in history.edges_s[[0, -1]]]
    return {**time_axis(), "scale": {"domain": ends, "nice": False}}


def _hit_layers(rate: float, time: Spec) -> list[Spec]:
    y = {
        "type": "quantitative",
        "scale": {"domain": [0, 100]},
        "axis": {"title": "Prompt tokens found (%)"},
    }
    tooltip = [
        {"field": "t_s", "type": "quantitative", "title": "from (s)"},
        {"field": "hit_pct", "type": "quantitative", "title": "found (%)"},
        {"field": "hits_tokens", "type": "quantitative", "title": "found (tokens)", "format": ",d"},
        {
            "field": "queries_tokens",
            "type": "quantitative",
            "title": "looked up (tokens)",
            "format": ",d",
        },
    ]
    return [
        {
            "mark": {"type": "bar", "color": colour("current"), "binSpacing": 0},
            "encoding": {
                "x": {**time, "bin": "binned"},
                "x2": {"field": "t_end_s"},
                "y": {"field": "hit_pct", **y},
                "tooltip": tooltip,
            },
        },
        {
            "data": {"values": [{}]},
            "mark": {
                "type": "rule",
                "aria": False,
                "color": colour("ink"),
                "strokeDash": BASELINE_DASH,
            },
            "encoding": {"y": {"datum": rounded(100 * rate), "type": "quantitative"}},
        },
    ]


def _costs(history: PoolHistory) -> list[Row]:
    last = history.edges_s.size - 2
    at_s = np.array([loss.at_s for loss in history.losses])
    places = np.clip(np.searchsorted(history.edges_s, at_s, side="right") - 1, 0, last)
    starts, _ = _borders(history)
    rows: list[Row] = []
    for place in sorted({int(p) for p in places}):
        here = [h for h, p in zip(history.losses, places.tolist(), strict=True) if p == place]
        stalls = [loss.stalled_s for loss in here if not math.isnan(loss.stalled_s)]
        rows.append(
            {
                "t_s": starts[place],
                "preemptions": len(here),
                "recomputed_tokens": sum(loss.recomputed_tokens for loss in here),
                "recomputed_ms": rounded(1e3 * sum(loss.recomputed_s for loss in here)),
                "longest_stall_s": rounded(max(stalls)) if stalls else None,
            }
        )
    return rows


def _cost_body(time: Spec) -> Spec:
    return {
        "mark": {
            "type": "point",
            "shape": "triangle-up",
            "filled": True,
            "size": 70,
            "opacity": 0.9,
            "color": colour("slo"),
        },
        "encoding": {
            "x": time,
            "y": {
                "field": "recomputed_ms",
                "type": "quantitative",
                "scale": {"domainMin": 0, "nice": True},
                "axis": {"title": "Recomputation (GPU ms)"},
            },
            "tooltip": [
                {"field": "t_s", "type": "quantitative", "title": "from (s)"},
                {"field": "preemptions", "type": "quantitative"},
                {
                    "field": "recomputed_tokens",
                    "type": "quantitative",
                    "title": "tokens computed again",
                    "format": ",d",
                },
                {"field": "recomputed_ms", "type": "quantitative", "title": "GPU time (ms)"},
                {"field": "longest_stall_s", "type": "quantitative", "title": "longest stall (s)"},
            ],
        },
    }
