"""The KV block pool over time: a heat map of its blocks, and how many are owned, cached, free."""

import numpy as np

from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import HEIGHT, Spec, colour, time_axis
from twin.report.numbers import count, percent, seconds
from twin.telemetry.pool.history import PoolHistory
from twin.telemetry.pool.samples import KINDS

WORDS = {
    "shared": "held by several requests",
    "owned": "held by one request",
    "cached": "cached",
    "free": "free",
}
"""Kinds of blocks as a legend names them."""

_ROLES = {"shared": "age", "owned": "current", "cached": "hbm", "free": "launch"}
_STATES = ("owned", "cached", "free")
_EMPTY = "No step ran in this window."
_COUNTED = (
    "This engine counts its KV tokens; which page a token lies in decides nothing and is not "
    "simulated, so there is no map of blocks. The counts below are exact."
)


def pool_map(history: PoolHistory | None) -> Chart:
    """Return the blocks over time: each cell in the colour of what most of its blocks are."""
    name, title = "pool_map", "Block pool: what each part of it holds"
    if history is None or history.cells is None:
        return Chart(name, title, {}, [], _EMPTY if history is None else _COUNTED)
    rows = _cells(history)
    top = int(history.states[:, 0].max())
    alt = (
        f"What the {count(history.usable_blocks)} KV blocks{_whose(history)} hold over "
        f"{seconds(_length_s(history))}: at most {percent(top / history.usable_blocks)} of them "
        "belong to requests at an instant shown."
    )
    width_s = float(history.edges_s[1] - history.edges_s[0])
    columns, lines = history.cells.shape[0] - 1, history.cells.shape[1]
    caption = (
        f"{columns} instants, {_width(history)} apart, by {lines} rows of about "
        f"{count(history.usable_blocks / lines)} blocks in order of their numbers. Colour: what "
        "most blocks of a cell are; the fainter, the more mixed. Cached: no request holds it, and "
        f"a later one can hit it.{_others(history)}"
    )
    spec = unit_chart(title, alt, rows, _map_body(width_s)) | {"height": HEIGHT + 60}
    return Chart(name, title, spec, rows, alt, caption)


def pool_area(history: PoolHistory | None) -> Chart:
    """Return owned, cached and free blocks over time, stacked; preemptions as triangles on top."""
    name, title = "pool_area", "Blocks owned, cached and free"
    if history is None:
        return Chart(name, title, {}, [], _EMPTY)
    lost = losses_by_interval(history)
    rows: list[Row] = [
        {"t_s": t} | dict(zip(_STATES, blocks, strict=True)) | {"preemptions": lost[place]}
        for place, (t, blocks) in enumerate(zip(_starts(history), _states(history), strict=True))
    ]
    tops = {state: max(row[state] for row in rows) for state in _STATES}
    total = sum(lost)
    alt = (
        f"Of {count(history.usable_blocks)} KV blocks{_whose(history)} at most "
        f"{count(tops['owned'])} are owned by requests and {count(tops['cached'])} cached at an "
        f"instant shown; {count(total)} preemptions."
    )
    caption = (
        f"{len(rows)} instants, {_width(history)} apart."
        f"{' ▲: preemptions until the next.' if total else ''}{_others(history)}"
    )
    spec = unit_chart(title, alt, rows, {"layer": _area_layers(history, triangles=total > 0)})
    return Chart(name, title, spec, rows, alt, caption)


def losses_by_interval(history: PoolHistory) -> list[int]:
    """Return how many requests of the watched core were preempted in each interval."""
    at_s = [loss.at_s for loss in history.losses if loss.core == history.core]
    return [int(n) for n in np.histogram(at_s, bins=history.edges_s)[0]]


def _starts(history: PoolHistory) -> list[float]:
    return [rounded(float(t), 6) for t in history.edges_s[:-1]]


def _states(history: PoolHistory) -> list[list[int]]:
    states: list[list[int]] = history.states[:-1].tolist()
    return states


def _length_s(history: PoolHistory) -> float:
    return float(history.edges_s[-1] - history.edges_s[0])


def _width(history: PoolHistory) -> str:
    return seconds(float(history.edges_s[1] - history.edges_s[0]))


def _whose(history: PoolHistory) -> str:
    return "" if history.cores == 1 else f" of engine core {history.core}"


def _others(history: PoolHistory) -> str:
    if history.cores == 1:
        return ""
    return (
        f" Engine core {history.core} of {count(history.cores)} (from 0): it preempted most, or "
        "else held the largest share of its blocks."
    )


def _cells(history: PoolHistory) -> list[Row]:
    if history.cells is None:
        return []
    borders, rows = history.first_block, []
    for start, column in zip(_starts(history), history.cells[:-1].tolist(), strict=True):
        for place, blocks in enumerate(column):
            most = KINDS[max(range(len(KINDS)), key=blocks.__getitem__)]
            row: Row = {"t_s": start, "block": borders[place], "block_end": borders[place + 1]}
            rows.append(row | {"mostly": most} | dict(zip(KINDS, blocks, strict=True)))
    return rows


def _map_colour() -> Spec:
    names = " : ".join(f"datum.value == '{kind}' ? '{words}'" for kind, words in WORDS.items())
    return {
        "field": "mostly",
        "type": "nominal",
        "scale": {"domain": list(WORDS), "range": [colour(_ROLES[kind]) for kind in WORDS]},
        "legend": {
            "title": None,
            "symbolType": "square",
            "symbolOpacity": 1,
            "columns": 2,
            "labelExpr": f"{names} : datum.value",
        },
    }


def _map_body(width_s: float) -> Spec:
    return {
        "transform": [
            {"calculate": f"datum.t_s + {width_s}", "as": "t_end_s"},
            {
                "calculate": "datum[datum.mostly] / (datum.block_end - datum.block)",
                "as": "share",
            },
        ],
        # Neighbours overlap by half a pixel: without that, gaps show between them.
        "mark": {"type": "rect", "x2Offset": 0.5, "y2Offset": -0.5},
        "encoding": {
            "x": time_axis(),
            "x2": {"field": "t_end_s"},
            "y": {
                "field": "block",
                "type": "quantitative",
                "scale": {"nice": False, "zero": False},
                "axis": {"title": "KV block (number)", "grid": False, "format": ",d"},
            },
            "y2": {"field": "block_end"},
            "color": _map_colour(),
            "opacity": {
                "field": "share",
                "type": "quantitative",
                "scale": {"domain": [1 / len(KINDS), 1], "range": [0.3, 1]},
                "legend": None,
            },
            "tooltip": [
                {"field": "t_s", "type": "quantitative", "title": "at (s)"},
                {"field": "block", "type": "quantitative", "title": "from block", "format": ",d"},
                *(
                    {"field": kind, "type": "quantitative", "title": words, "format": ",d"}
                    for kind, words in WORDS.items()
                ),
            ],
        },
    }


def _area_layers(history: PoolHistory, *, triangles: bool) -> list[Spec]:
    domain = [0, history.usable_blocks]
    order = " : ".join(f"datum.state == '{state}' ? {i}" for i, state in enumerate(_STATES))
    area: Spec = {
        "transform": [
            {"fold": list(_STATES), "as": ["state", "blocks"]},
            {"calculate": f"{order} : {len(_STATES)}", "as": "order"},
        ],
        "mark": {"type": "area", "interpolate": "step-after"},
        "encoding": {
            "x": time_axis(),
            "y": {
                "field": "blocks",
                "type": "quantitative",
                "stack": "zero",
                "scale": {"domain": domain, "nice": False},
                "axis": {"title": f"KV blocks of {history.block_tokens:,} tokens"},
            },
            "color": {
                "field": "state",
                "type": "nominal",
                "scale": {
                    "domain": list(_STATES),
                    "range": [colour(_ROLES[state]) for state in _STATES],
                },
                "legend": {"title": None, "symbolType": "square"},
            },
            "order": {"field": "order", "type": "quantitative"},
            "tooltip": [
                {"field": "t_s", "type": "quantitative", "title": "at (s)"},
                {"field": "state", "type": "nominal"},
                {"field": "blocks", "type": "quantitative", "format": ",d"},
            ],
        },
    }
    return [area, _triangles(history.usable_blocks)] if triangles else [area]


def _triangles(at: int) -> Spec:
    return {
        "transform": [{"filter": "datum.preemptions > 0"}],
        "mark": {
            "type": "point",
            "shape": "triangle-up",
            "filled": True,
            "size": 60,
            "opacity": 1,
            "yOffset": -6,
            "color": colour("slo"),
        },
        "encoding": {
            "x": time_axis(),
            "y": {"datum": at, "type": "quantitative"},
            "tooltip": [
                {"field": "t_s", "type": "quantitative", "title": "from (s)"},
                {"field": "preemptions", "type": "quantitative"},
            ],
        },
    }
