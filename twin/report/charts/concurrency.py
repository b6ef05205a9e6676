"""Requests that fit at once over their context, as a Vega-Lite spec: a line a KV dtype."""

from collections.abc import Sequence
from dataclasses import dataclass

from twin.report.charts.chart import Chart, Row, unit_chart
from twin.report.charts.style import (
    BASELINE_DASH,
    SLO_DASH,
    Spec,
    colour,
    log_axis,
    log_domain,
)
from twin.report.numbers import count

SHORTEST = 128
_PER_OCTAVE = 2
_LOOKS = (
    ("current", "circle", [1, 0]),
    ("decode", "square", [8, 3]),
    ("prefill", "triangle-up", [3, 3]),
    ("cost", "diamond", [8, 3, 2, 3]),
    ("age", "cross", [1, 3]),
)
"""Colour, shape and dash of each line: none is told by its colour alone."""


@dataclass(frozen=True, slots=True)
class KvPool:
    """The KV blocks of one engine.

    Attributes:
        name: of the line.
        blocks: that requests can hold.
        block_tokens: tokens a block.
    """

    name: str
    blocks: int
    block_tokens: int

    def requests(self, context: int) -> int:
        """Return how many requests of a context, tokens, fit at once."""
        return self.blocks // -(-context // self.block_tokens)


@dataclass(frozen=True, slots=True)
class ContextMark:
    """A context to point out: its name and tokens."""

    name: str
    tokens: int


def concurrency(
    pools: Sequence[KvPool], longest: int, marks: Sequence[ContextMark], most_seqs: int
) -> Chart:
    """Return the most requests at once over the context that each holds.

    Args:
        pools: by KV dtype, at most five.
        longest: context that the engine takes, tokens.
        marks: contexts of the scenario.
        most_seqs: requests that the engine runs at once, whatever fits.
    """
    title = "Requests that fit at once, by context"
    pools = pools[: len(_LOOKS)]
    contexts = _contexts(longest)
    rows: list[Row] = [
        {"kv_dtype": pool.name, "context_tokens": context, "requests": pool.requests(context)}
        for pool in pools
        for context in contexts
        if pool.requests(context) > 0
    ]
    if not rows:
        return Chart("concurrency", title, {}, [], "No request fits: there is no room for KV.")
    x_domain = log_domain(contexts[0], contexts[-1])
    highest = max(*(row["requests"] for row in rows), most_seqs)
    y_domain = log_domain(min(row["requests"] for row in rows), highest)
    inside = [mark for mark in marks if x_domain[0] <= mark.tokens <= x_domain[1]]
    layers = [*_lines([pool.name for pool in pools], x_domain, y_domain), *_cap(most_seqs)]
    for place, mark in enumerate(inside):
        layers += _mark(mark, place)
    alt = _sentence(pools, marks, longest)
    spec = unit_chart(title, alt, rows, {"layer": layers})
    return Chart("concurrency", title, spec, rows, alt, _caption(pools, contexts))


def _contexts(longest: int) -> list[int]:
    first = min(SHORTEST, longest)
    found, step = [], 0
    while (context := round(first * 2 ** (step / _PER_OCTAVE))) < longest:
        found.append(context)
        step += 1
    return [*found, longest]


def _lines(names: list[str], x: tuple[float, float], y: tuple[float, float]) -> list[Spec]:
    looks = _LOOKS[: len(names)]

    def scale(values: list[object]) -> Spec:
        return {
            "field": "kv_dtype",
            "type": "nominal",
            "scale": {"domain": names, "range": values},
            "legend": {"title": "KV dtype", "symbolSize": 60, "columns": 1, "labelLimit": 300},
        }

    shared: Spec = {
        "x": log_axis("context_tokens", "Context of each request (tokens)", x),
        "y": log_axis("requests", "Requests at once", y),
        "color": scale([colour(role) for role, _, _ in looks]),
        "strokeDash": scale([dash for _, _, dash in looks]),
        "shape": scale([shape for _, shape, _ in looks]),
        "tooltip": [
            {"field": "kv_dtype", "type": "nominal", "title": "KV dtype"},
            {"field": "context_tokens", "type": "quantitative", "title": "context", "format": ","},
            {"field": "requests", "type": "quantitative", "format": ","},
        ],
    }
    lines = {key: encoding for key, encoding in shared.items() if key != "shape"}
    points = {key: encoding for key, encoding in shared.items() if key != "strokeDash"}
    return [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": lines},
        {"mark": {"type": "point", "filled": True, "size": 40, "opacity": 1}, "encoding": points},
    ]


def _cap(most_seqs: int) -> list[Spec]:
    """The engine's own limit, a labelled rule."""
    at = {"datum": most_seqs, "type": "quantitative"}
    label = f"engine runs at most {count(most_seqs)}"
    return [
        _rule({"y": at}, SLO_DASH, "slo"),
        _label({"y": at}, label, {"align": "right", "x": {"expr": "width - 4"}, "dy": -3}),
    ]


def _mark(mark: ContextMark, place: int) -> list[Spec]:
    at = {"datum": mark.tokens, "type": "quantitative"}
    side = {"align": "left", "dx": 4} if place else {"align": "right", "dx": -4}
    where = {"y": {"expr": "height - 4"}, **side}
    label = f"{mark.name} {count(mark.tokens)}"
    return [_rule({"x": at}, BASELINE_DASH, "ink"), _label({"x": at}, label, where)]


def _rule(encoding: Spec, dash: list[int], role: str) -> Spec:
    mark = {
        "type": "rule",
        "aria": False,
        "color": colour(role),
        "strokeDash": dash,
        "strokeWidth": 1.5,
    }
    return {"data": {"values": [{}]}, "mark": mark, "encoding": encoding}


def _label(encoding: Spec, text: str, where: Spec) -> Spec:
    mark = {"type": "text", "text": text, "fontSize": 12, "color": colour("ink")}
    mark |= {"baseline": "bottom", **where}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": encoding}


def _sentence(pools: Sequence[KvPool], marks: Sequence[ContextMark], longest: int) -> str:
    at = marks or [ContextMark("longest context", longest)]
    told = "; ".join(
        f"{pool.name} "
        + ", ".join(f"{count(pool.requests(m.tokens))} at the {m.name} {m.tokens:,}" for m in at)
        for pool in pools
    )
    return f"Requests that fit at once over their context in tokens, by KV dtype: {told}."


def _caption(pools: Sequence[KvPool], contexts: Sequence[int]) -> str:
    words = "Requests of one engine, each with its whole context in KV and nothing shared."
    if any(pool.requests(contexts[-1]) == 0 for pool in pools):
        words += " A line stops where not even one request fits."
    return words
