"""Latency of a load over the memory it ranges over: L2, DRAM, and the levels of the TLB."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twin.report.charts.axes import bytes_axis, bytes_domain
from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import SLO_DASH, Spec, colour
from twin.report.numbers import significant

LOOKS: dict[str, tuple[str, list[int]]] = {
    "a load a line": ("current", [1, 0]),
    "a load a page": ("cost", [6, 3]),
}
"""Colour role and dash of each pattern, in the order they are drawn."""

_X, _Y = "Footprint (bytes)", "Latency of one load (ns)"


@dataclass(frozen=True, slots=True)
class Latency:
    """Mean latency of a load of a pointer chase.

    Attributes:
        pattern: of `LOOKS`.
        footprint_bytes: what the chase ranges over.
        ns: with the constants as they are.
        low_ns, high_ns: with each constant at an end of its interval.
    """

    pattern: str
    footprint_bytes: float
    ns: float
    low_ns: float
    high_ns: float


def latency_by_footprint(
    gpu: str,
    curve: Sequence[Latency],
    reaches: Mapping[str, float],
    measured: Sequence[Latency] = (),
) -> Chart:
    """Return the latency of a load over the footprint of a pointer chase.

    Args:
        gpu: its name, for the title.
        curve: modelled, patterns one after another, footprints ascending.
        reaches: bytes that each level holds or covers, by its short name.
        measured: points of a profile that has them; their band is not drawn.
    """
    title = f"Latency over footprint: {gpu}"
    if not curve:
        return Chart("footprint", title, {}, [], f"The latencies of {gpu} are not known.")
    rows = [_row(one, "modelled") for one in curve] + [_row(one, "measured") for one in measured]
    domain = bytes_domain(
        min(row["footprint_bytes"] for row in rows), max(row["footprint_bytes"] for row in rows)
    )
    top = max(row["high_ns"] for row in rows)
    shown = {name: at for name, at in reaches.items() if domain[0] < at < domain[1]}
    axes: Spec = {
        "x": bytes_axis("footprint_bytes", _X, domain),
        "y": {
            "field": "ns",
            "type": "quantitative",
            "scale": {"domain": [0, rounded(1.12 * top, 3)], "nice": False},
            "axis": {"title": _Y},
        },
    }
    layers = [_band(axes), _line(axes), *_reach_layers(axes, shown)]
    if measured:
        layers.append(_dots(axes))
    alt = _sentence(gpu, curve, shown)
    caption = (
        "One warp follows pointers in random order, past the L1. A load a page leaves the data in "
        "the L2, so that its steps are address translation alone. Band: every constant that is a "
        "prior or varies at the ends of its interval."
    )
    spec = unit_chart(title, alt, rows, {"layer": layers})
    return Chart("footprint", title, spec, rows, alt, caption)


def _row(one: Latency, kind: str) -> Row:
    return {
        "kind": kind,
        "pattern": one.pattern,
        "footprint_bytes": rounded(one.footprint_bytes, 6),
        "ns": rounded(one.ns, 4),
        "low_ns": rounded(one.low_ns, 4),
        "high_ns": rounded(one.high_ns, 4),
    }


def _looks(*, dashed: bool) -> Spec:
    names = list(LOOKS)

    def scale(values: list[object]) -> Spec:
        return {
            "field": "pattern",
            "type": "nominal",
            "scale": {"domain": names, "range": values},
            "legend": {
                "title": None,
                "symbolType": "stroke",
                "symbolStrokeWidth": 2,
                "symbolOpacity": 1,
            },
        }

    found = {"color": scale([colour(role) for role, _ in LOOKS.values()])}
    if dashed:
        found["strokeDash"] = scale([dash for _, dash in LOOKS.values()])
    return found


def _only(kind: str) -> list[Spec]:
    return [{"filter": {"field": "kind", "equal": kind}}]


def _band(axes: Spec) -> Spec:
    y = {**axes["y"], "field": "low_ns"}
    return {
        "transform": _only("modelled"),
        "mark": {"type": "area", "opacity": 0.2, "clip": True},
        "encoding": {"x": axes["x"], "y": y, "y2": {"field": "high_ns"}, **_looks(dashed=False)},
    }


def _line(axes: Spec) -> Spec:
    tooltip = [
        {"field": "pattern", "type": "nominal"},
        {"field": "footprint_bytes", "type": "quantitative", "title": "bytes", "format": ".3~s"},
        {"field": "ns", "type": "quantitative", "title": "ns", "format": ".3~r"},
        {"field": "low_ns", "type": "quantitative", "title": "at least (ns)", "format": ".3~r"},
        {"field": "high_ns", "type": "quantitative", "title": "at most (ns)", "format": ".3~r"},
    ]
    return {
        "transform": _only("modelled"),
        "mark": {"type": "line", "strokeWidth": 2, "clip": True},
        "encoding": {**axes, **_looks(dashed=True), "tooltip": tooltip},
    }


def _dots(axes: Spec) -> Spec:
    return {
        "transform": _only("measured"),
        "mark": {"type": "point", "filled": True, "size": 30, "clip": True},
        "encoding": {**axes, **_looks(dashed=False)},
    }


def _reach_layers(axes: Spec, reaches: Mapping[str, float]) -> list[Spec]:
    """A rule and a name at what each level holds; names take turns at two heights."""
    data: Spec = {
        "values": [
            {"name": name, "footprint_bytes": at, "turn": index % 2}
            for index, (name, at) in enumerate(sorted(reaches.items(), key=lambda pair: pair[1]))
        ]
    }
    rule: Spec = {
        "type": "rule",
        "aria": False,
        "color": colour("ink"),
        "strokeDash": SLO_DASH,
        "opacity": 0.6,
    }
    word: Spec = {
        "type": "text",
        "color": colour("ink"),
        "fontSize": 12,
        "align": "right",
        "dx": -4,
    }
    words: list[Spec] = [
        {
            "data": data,
            "transform": [{"filter": f"datum.turn === {turn}"}],
            "mark": {**word, "baseline": "top", "y": 2 + 15 * turn},
            "encoding": {"x": axes["x"], "text": {"field": "name", "type": "nominal"}},
        }
        for turn in (0, 1)
    ]
    return [{"data": data, "mark": rule, "encoding": {"x": axes["x"]}}, *words]


def _sentence(gpu: str, curve: Sequence[Latency], reaches: Mapping[str, float]) -> str:
    parts = []
    for pattern in LOOKS:
        line = [one for one in curve if one.pattern == pattern]
        if line:
            at = significant(line[-1].footprint_bytes / 1e9)
            parts.append(
                f"{pattern}: {significant(line[0].ns)} ns at first, {significant(line[-1].ns)} ns "
                f"over {at} GB"
            )
    steps = f"; levels end at {', '.join(reaches)}" if reaches else ""
    return f"Latency of one load on {gpu} by footprint, {'; '.join(parts)}{steps}."
