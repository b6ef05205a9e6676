"""Charts over simulated time: KV occupancy, queue, what the steps ran and what bound them."""

import numpy as np

from twin.engine.result import BOUNDS, Floats, Ints, SimulationResult
from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import BASELINE_DASH, SCHEMA, WIDTH, Spec, colour, time_axis
from twin.report.numbers import count, percent, seconds, significant
from twin.report.occupancy import Span, binned_mean, hold_seconds, integral_in_bins

_STATE_BINS = 400
_STEP_BINS = 200
_BOUND_NAMES = tuple(name for name in BOUNDS if name != "idle")
_EMPTY = "No step ran in this window."


def kv_over_time(result: SimulationResult) -> Chart:
    """Return KV occupancy over time in percent of usable blocks, preemptions as triangles.

    The line is the mean over time and replicas in each bin, the shade reaches up to the highest
    occupancy of any replica in it.
    """
    title = "KV cache occupancy"
    steps = result.steps
    used, all_of_it = result.kv_in_use
    if not len(steps) or all_of_it <= 0:
        return Chart("kv", title, {}, [], _EMPTY)
    edges = _edges(result, _STATE_BINS)
    hold = hold_seconds(result, Span(edges[0], edges[-1]))
    means = binned_mean(result, used, hold, edges)
    mean = 100 * np.mean(list(means.values()), axis=0) / all_of_it
    peak = np.maximum(100 * _bin_max(result, used, edges) / all_of_it, mean)
    lost = _bin_sum(result, steps.preempted, edges)
    rows: list[Row] = [
        {"t_s": t, "mean_pct": rounded(m), "peak_pct": rounded(p), "preemptions": int(n)}
        for t, m, p, n in zip(_times(edges), mean.tolist(), peak.tolist(), lost, strict=True)
    ]
    top = float(used.max()) / all_of_it
    blocks = f"{count(result.usable_blocks)} usable" if all_of_it > 1 else "a replica's"
    total = int(steps.preempted.sum())
    alt = (
        f"KV cache occupancy over {seconds(float(edges[-1] - edges[0]))}: peak {percent(top)} of "
        f"{blocks} blocks, {count(total)} preemptions."
    )
    caption = (
        f"{edges.size - 1} intervals of {seconds(float(edges[1] - edges[0]))}. Line: mean"
        f"{' over replicas' if result.replicas > 1 else ''}; shade: up to the peak in the "
        "interval; ▲: preemptions in it."
    )
    spec = unit_chart(title, alt, rows, {"layer": _kv_layers(total)})
    return Chart("kv", title, spec, rows, alt, caption)


def _kv_layers(preemptions: int) -> list[Spec]:
    y = {
        "type": "quantitative",
        "scale": {"domain": [0, 100]},
        "axis": {"title": "KV blocks in use (%)"},
    }
    layers: list[Spec] = [
        {
            "mark": {
                "type": "area",
                "interpolate": "step-after",
                "color": colour("current"),
                "opacity": 0.2,
            },
            "encoding": {"x": time_axis(), "y": {"field": "peak_pct", **y}},
        },
        {
            "mark": {
                "type": "line",
                "interpolate": "step-after",
                "color": colour("current"),
                "strokeWidth": 2,
            },
            "encoding": {"x": time_axis(), "y": {"field": "mean_pct", **y}},
        },
    ]
    if preemptions:
        mark = {"type": "point", "shape": "triangle-up", "filled": True, "size": 60}
        layers.append(
            {
                "transform": [{"filter": "datum.preemptions > 0"}],
                "mark": {**mark, "color": colour("slo"), "opacity": 0.9},
                "encoding": {
                    "x": time_axis(),
                    "y": {"field": "peak_pct", **y},
                    "tooltip": [
                        {"field": "t_s", "type": "quantitative", "title": "from (s)"},
                        {"field": "preemptions", "type": "quantitative"},
                        {"field": "peak_pct", "type": "quantitative", "title": "peak (%)"},
                    ],
                },
            }
        )
    return layers


def queue_over_time(result: SimulationResult) -> Chart:
    """Return running and waiting requests over time, summed over replicas, mean of each bin."""
    title = "Requests running and waiting"
    steps = result.steps
    if not len(steps):
        return Chart("queue", title, {}, [], _EMPTY)
    edges = _edges(result, _STATE_BINS)
    hold = hold_seconds(result, Span(edges[0], edges[-1]))
    rows: list[Row] = []
    for state, values in (("running", steps.running), ("waiting", steps.waiting)):
        total = sum(binned_mean(result, values, hold, edges).values(), np.zeros(edges.size - 1))
        rows += [
            {"t_s": t, "state": state, "requests": rounded(n)}
            for t, n in zip(_times(edges), total.tolist(), strict=True)
        ]
    tops = {s: max(row["requests"] for row in rows if row["state"] == s) for s in _STATES}
    alt = (
        f"Requests over time: at most {significant(tops['running'])} running and "
        f"{significant(tops['waiting'])} waiting, as means of intervals."
    )
    caption = (
        f"Means over {edges.size - 1} intervals of {seconds(float(edges[1] - edges[0]))}"
        f"{', summed over replicas' if result.replicas > 1 else ''}."
    )
    spec = unit_chart(title, alt, rows, _queue_body())
    return Chart("queue", title, spec, rows, alt, caption)


_STATES = ("running", "waiting")


def _queue_body() -> Spec:
    state = {"field": "state", "type": "nominal", "legend": {"title": None}}
    domain = list(_STATES)
    return {
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
        "encoding": {
            "x": time_axis(),
            "y": {
                "field": "requests",
                "type": "quantitative",
                "axis": {"title": "Requests", "tickMinStep": 1},
            },
            "color": {
                **state,
                "scale": {"domain": domain, "range": [colour("current"), colour("baseline")]},
            },
            "strokeDash": {**state, "scale": {"domain": domain, "range": [[1, 0], BASELINE_DASH]}},
        },
    }


def steps_over_time(result: SimulationResult) -> Chart:
    """Return prefill and decode tokens per second over time, above a strip of what bound them.

    The strip stacks the share of each bin's time, averaged over replicas, that the GPU spent in
    steps bound by compute, HBM, links or launches; blank is idle.
    """
    title = "Steps: tokens processed and what binds them"
    steps = result.steps
    if not len(steps):
        return Chart("steps", title, {}, [], _EMPTY)
    edges = _edges(result, _STEP_BINS)
    columns = {
        "prefill": _tokens_per_s(result, steps.prefill_tokens, edges),
        "decode": _tokens_per_s(result, steps.decode_tokens, edges),
        **_bound_shares(result, edges),
    }
    ends = [rounded(float(t), 6) for t in edges[1:]]
    rows: list[Row] = [
        {"t_s": t, "t_end_s": end} | {name: rounded(float(v[i]), 4) for name, v in columns.items()}
        for i, (t, end) in enumerate(zip(_times(edges), ends, strict=True))
    ]
    tokens = int(steps.prefill_tokens.sum()), int(steps.decode_tokens.sum())
    alt = (
        f"Tokens processed over time: {count(tokens[0])} prefill and {count(tokens[1])} decode "
        f"tokens in {count(len(steps))} steps."
    )
    caption = (
        f"{count(len(steps))} steps in {edges.size - 1} intervals of "
        f"{seconds(float(edges[1] - edges[0]))}. Strip: share of time by what binds the step; "
        "blank is idle."
    )
    spec: Spec = {
        "$schema": SCHEMA,
        "title": title,
        "description": alt,
        "data": {"values": rows},
        "vconcat": [_token_bars(), _bound_strip()],
        "resolve": {"scale": {"color": "independent", "x": "shared"}},
        "spacing": 8,
    }
    return Chart("steps", title, spec, rows, alt, caption)


def _token_bars() -> Spec:
    parts = ["prefill", "decode"]
    return _stacked(parts, 200, {"title": "Tokens per second"}, x_title=None) | {"height": 200}


def _bound_strip() -> Spec:
    axis = {"title": "Time share", "format": "%", "values": [0, 1]}
    return _stacked(list(_BOUND_NAMES), 70, axis, x_title="Time since start (s)", legend="bound by")


def _stacked(
    parts: list[str], height: int, y_axis: Spec, *, x_title: str | None, legend: str | None = None
) -> Spec:
    x = time_axis("t_s", x_title or "") | {"bin": "binned"}
    if x_title is None:
        x["axis"] = {"title": None, "labels": False, "ticks": False, "grid": False}
    order = " : ".join(f"datum.part == '{part}' ? {i}" for i, part in enumerate(parts))
    return {
        "width": WIDTH,
        "height": height,
        "transform": [
            {"fold": parts, "as": ["part", "value"]},
            {"calculate": f"{order} : {len(parts)}", "as": "order"},
        ],
        "mark": {"type": "bar", "orient": "vertical", "binSpacing": 0},
        "encoding": {
            "x": x,
            "x2": {"field": "t_end_s"},
            "y": {
                "field": "value",
                "type": "quantitative",
                "stack": "zero",
                "axis": y_axis,
                **({"scale": {"domain": [0, 1]}} if "format" in y_axis else {}),
            },
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": {"domain": parts, "range": [colour(part) for part in parts]},
                "legend": {"title": legend},
            },
            "order": {"field": "order", "type": "quantitative"},
            "tooltip": [
                {"field": "part", "type": "nominal"},
                {"field": "t_s", "type": "quantitative", "title": "from (s)"},
                {"field": "value", "type": "quantitative"},
            ],
        },
    }


def _tokens_per_s(result: SimulationResult, tokens: Ints, edges: Floats) -> Floats:
    """Tokens of each step, spread evenly over its GPU time, per second of each bin."""
    steps = result.steps
    total = np.zeros(edges.size - 1)
    for replica in range(result.replicas):
        rows = np.flatnonzero(steps.replica == replica)
        begin, end = steps.start_s[rows], steps.end_s[rows]
        # A step of no duration would lose its tokens: give it the least that can be told apart.
        end = np.maximum(end, np.nextafter(begin, np.inf))
        total += integral_in_bins(tokens[rows] / (end - begin), begin, end, edges)
    return total * max(1, result.stride) / np.diff(edges)


def _bound_shares(result: SimulationResult, edges: Floats) -> dict[str, Floats]:
    steps = result.steps
    shares = {}
    for name in _BOUND_NAMES:
        busy = np.zeros(edges.size - 1)
        for replica in range(result.replicas):
            rows = np.flatnonzero((steps.replica == replica) & (steps.bound == BOUNDS.index(name)))
            begin, end = steps.start_s[rows], steps.end_s[rows]
            # A pipeline's step keeps each stage busy for a part of its time only.
            part = np.ones(rows.size)
            np.divide(steps.busy_s[rows], end - begin, out=part, where=end > begin)
            busy += integral_in_bins(part, begin, end, edges)
        shares[name] = busy * max(1, result.stride) / np.diff(edges) / result.replicas
    return shares


def _edges(result: SimulationResult, bins: int) -> Floats:
    steps = result.steps
    start = min(float(steps.scheduled_s.min()), float(result.requests.arrival_s.min()))
    end = float(steps.end_s.max())
    return np.linspace(start, end if end > start else start + 1.0, bins + 1)


def _times(edges: Floats) -> list[float]:
    return [rounded(float(t), 6) for t in edges[:-1]]


def _bin_of(result: SimulationResult, edges: Floats) -> Ints:
    width = (edges[-1] - edges[0]) / (edges.size - 1)
    at = ((result.steps.scheduled_s - edges[0]) / width).astype(np.int64)
    inside: Ints = np.clip(at, 0, edges.size - 2)
    return inside


def _bin_max(result: SimulationResult, values: Ints | Floats, edges: Floats) -> Floats:
    highest = np.zeros(edges.size - 1)
    np.maximum.at(highest, _bin_of(result, edges), values.astype(np.float64))
    return highest


def _bin_sum(result: SimulationResult, values: Ints, edges: Floats) -> list[int]:
    sums = np.bincount(_bin_of(result, edges), weights=values, minlength=edges.size - 1)
    return [int(n) * max(1, result.stride) for n in sums]
