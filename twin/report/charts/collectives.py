"""Time of a collective over its bytes, a line a number of ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

from twin.report.charts.axes import bytes_axis, bytes_domain
from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import Spec, colour, log_axis, log_domain
from twin.report.numbers import significant
from twin.units import format_bytes, format_seconds

LOOKS: dict[int, tuple[str, list[int], str]] = {
    2: ("current", [1, 0], "circle"),
    4: ("decode", [8, 3], "square"),
    8: ("age", [2, 2], "triangle-up"),
}
"""Colour role, dash and shape by number of ranks."""

_X, _Y = "Buffer (bytes)", "Time (us)"


@dataclass(frozen=True, slots=True)
class Timed:
    """One collective.

    Attributes:
        ranks: of `LOOKS`.
        num_bytes: full buffer, in the sense of NCCL's tests.
        seconds: what it takes.
        source: how that was obtained.
        label: what uses this size; empty: nothing does.
    """

    ranks: int
    num_bytes: float
    seconds: float
    source: str
    label: str = ""


def collective_time(
    kind: str,
    gpu: str,
    curve: Sequence[Timed],
    measured: Sequence[Timed] = (),
    used: Sequence[Timed] = (),
) -> Chart:
    """Return the time of a collective over its bytes.

    Args:
        kind: as it is called.
        gpu: its name, for the title.
        curve: modelled, ranks one after another, bytes ascending.
        measured: as they stand in tables.
        used: sizes that a scenario uses, with labels.
    """
    title = f"{kind[:1].upper()}{kind[1:]} on {gpu}"
    if not curve:
        return Chart("collective", title, {}, [], f"A node of {gpu} has one GPU: no {kind}.")
    rows = [
        *(_row(one, "modelled") for one in curve),
        *(_row(one, "measured") for one in measured),
        *(_row(one, "used") for one in used),
    ]
    sizes, times = [row["bytes"] for row in rows], [row["us"] for row in rows]
    axes = {
        "x": bytes_axis("bytes", _X, bytes_domain(min(sizes), max(sizes))),
        "y": log_axis("us", _Y, log_domain(min(times), max(times))),
    }
    layers = [_lines(axes)]
    if measured:
        layers.append(_dots(axes))
    if used:
        layers += _used(axes)
    alt = _sentence(title, curve, used)
    spec = unit_chart(title, alt, rows, {"layer": layers})
    caption = "Lines: as it is priced alone, all ranks arriving together."
    if measured:
        caption += " Points: measured."
    return Chart("collective", title, spec, rows, alt, caption)


def _row(one: Timed, kind: str) -> Row:
    return {
        "kind": kind,
        "ranks": one.ranks,
        "bytes": rounded(one.num_bytes, 6),
        "us": rounded(1e6 * one.seconds),
        "source": one.source,
        "label": one.label,
    }


def _looks(*channels: str) -> Spec:
    ranks = list(LOOKS)
    roles, dashes, shapes = zip(*LOOKS.values(), strict=True)
    ranges = {
        "color": [colour(role) for role in roles],
        "strokeDash": list(dashes),
        "shape": list(shapes),
    }
    return {
        channel: {
            "field": "ranks",
            "type": "nominal",
            "scale": {"domain": ranks, "range": ranges[channel]},
            "legend": {"title": "ranks", "titleOrient": "left"},
        }
        for channel in channels
    }


def _only(kind: str) -> list[Spec]:
    return [{"filter": {"field": "kind", "equal": kind}}]


_TOOLTIP: list[Spec] = [
    {"field": "ranks", "type": "nominal"},
    {"field": "bytes", "type": "quantitative", "format": ",.6~r"},
    {"field": "us", "type": "quantitative", "title": _Y, "format": ",.3~r"},
    {"field": "source", "type": "nominal", "title": "price"},
]


def _lines(axes: Spec) -> Spec:
    return {
        "transform": _only("modelled"),
        "mark": {"type": "line", "strokeWidth": 2, "clip": True},
        "encoding": {**axes, **_looks("color", "strokeDash"), "tooltip": _TOOLTIP},
    }


def _dots(axes: Spec) -> Spec:
    return {
        "transform": _only("measured"),
        "mark": {"type": "point", "filled": True, "size": 26, "opacity": 0.7, "clip": True},
        "encoding": {**axes, **_looks("color", "shape"), "tooltip": _TOOLTIP},
    }


def _used(axes: Spec) -> list[Spec]:
    """Rings at the sizes in use, named above the line: below it there may be points."""
    ring = {"type": "point", "filled": False, "size": 170, "strokeWidth": 2.5, "opacity": 1}
    word = {"type": "text", "color": colour("ink"), "fontSize": 12}
    return [
        {
            "transform": _only("used"),
            "mark": {**ring, "color": colour("ink"), "shape": "circle"},
            "encoding": {**axes, "tooltip": [{"field": "label", "type": "nominal"}, *_TOOLTIP]},
        },
        {
            "transform": _only("used"),
            "mark": {**word, "align": "right", "baseline": "bottom", "dx": -8, "dy": -8},
            "encoding": {**axes, "text": {"field": "label", "type": "nominal"}},
        },
    ]


def _sentence(title: str, curve: Sequence[Timed], used: Sequence[Timed]) -> str:
    ends = {one.ranks: one for one in curve}
    parts = [
        f"{ranks} ranks {significant(one.num_bytes / one.seconds / 1e9)} GB/s"
        for ranks, one in ends.items()
    ]
    largest = format_bytes(max(one.num_bytes for one in curve))
    sizes = "".join(
        f"; {one.label} uses {format_bytes(one.num_bytes)}: {format_seconds(one.seconds)}"
        for one in used
    )
    return f"Time of {title} over its bytes; at {largest}: {', '.join(parts)}{sizes}."
