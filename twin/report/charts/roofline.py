"""The roofline of a GPU with the operations of a step on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.labels import PLACES, Spot, along, places, share
from twin.report.charts.style import BASELINE_DASH, WIDTH, Spec, colour, log_axis, log_domain
from twin.report.numbers import significant

_HEIGHT = 380
_LOOKS = {"prefill": ("prefill", "circle"), "decode": ("decode", "square")}
_X, _Y = "Arithmetic intensity (FLOP/byte)", "Rate (TFLOP/s)"
_ROOM = 1.6
"""Factor between the outermost points and the ends of the axes."""


@dataclass(frozen=True, slots=True)
class Roofs:
    """What a GPU can do at most.

    Attributes:
        hbm_bytes_per_s: by its datasheet.
        stream_bytes_per_s: what plain reading reaches; None: not known.
        flops_per_s: dense tensor-core rate by name, as it is written at the roof.
    """

    hbm_bytes_per_s: float
    stream_bytes_per_s: float | None
    flops_per_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, or all of a step.

    Attributes:
        name: short, as its label says.
        phase: prefill or decode.
        flops, num_bytes: what it asks for at least; one without FLOPs is not drawn.
        seconds: what it takes.
        bound: what limits it.
        measured: whether tables of measurements price it.
        whole: whether it is the sum of a step.
    """

    name: str
    phase: str
    flops: float
    num_bytes: float
    seconds: float
    bound: str
    measured: bool
    whole: bool = False

    @property
    def intensity(self) -> float:
        """FLOP by byte."""
        return self.flops / self.num_bytes

    @property
    def tflops(self) -> float:
        """Reached TFLOP/s."""
        return self.flops / self.seconds / 1e12

    @property
    def drawn(self) -> bool:
        """Whether it has a place on logarithmic axes."""
        return min(self.flops, self.num_bytes, self.seconds) > 0


def roofline(gpu: str, roofs: Roofs, operations: Sequence[Operation]) -> Chart:
    """Return the roofline of a GPU and operations as points, hollow where not measured.

    Args:
        gpu: its name, for the title.
        roofs: of the GPU.
        operations: those first come first to a label.
    """
    title = f"Roofline of {gpu}"
    shown = [one for one in operations if one.drawn]
    x_domain, y_domain = _domains(roofs, shown)
    lines = _roof_rows(roofs, x_domain, y_domain)
    rows = [*lines, *_points(shown, lines, x_domain, y_domain)]
    alt = _sentence(gpu, roofs, shown)
    layers = [*_roof_layers(x_domain, y_domain), *_point_layers(x_domain, y_domain)]
    reached = roofs.stream_bytes_per_s
    caption = "" if reached is None else f"Dashed: plain reading reaches {_tb_per_s(reached)}. "
    caption += (
        "Bytes count each operand once, seconds are the forecast's. Filled: priced by measured "
        "tables; hollow: by physics alone or beyond the tables. Large: a whole step. Kernels that "
        "compute nothing to speak of are in the table alone."
    )
    spec = unit_chart(title, alt, rows, {"layer": layers})
    spec["height"] = _HEIGHT
    return Chart("roofline", title, spec, rows, alt, caption)


def _domains(
    roofs: Roofs, shown: Sequence[Operation]
) -> tuple[tuple[float, float], tuple[float, float]]:
    most = max(roofs.flops_per_s.values())
    ridges = [rate / roofs.hbm_bytes_per_s for rate in roofs.flops_per_s.values()]
    x = [*(one.intensity for one in shown), *ridges]
    y = [*(one.tflops for one in shown), most / 1e12, min(x) * roofs.hbm_bytes_per_s / 1e12]
    return (
        log_domain(min(x) / _ROOM, max(x) * 2 * _ROOM),
        log_domain(min(y) / _ROOM, max(y) * _ROOM),
    )


def _roof_rows(
    roofs: Roofs, x_domain: tuple[float, float], y_domain: tuple[float, float]
) -> list[Row]:
    """Two ends of each line: the slopes up to the highest roof, roofs from their ridge on."""
    most = max(roofs.flops_per_s.values())
    slopes = [("hbm", "HBM", roofs.hbm_bytes_per_s)]
    if roofs.stream_bytes_per_s is not None:
        slopes.append(("reached", "plain reading", roofs.stream_bytes_per_s))
    rows: list[Row] = []
    for line, name, rate in slopes:
        label = f"{name} {_tb_per_s(rate)}"
        start = max(x_domain[0], y_domain[0] * 1e12 / rate)
        rows += [_end(line, label, x, x * rate) for x in (start, most / rate)]
    for name, rate in roofs.flops_per_s.items():
        label = f"{name} {significant(rate / 1e12)} TFLOP/s"
        ends = rate / roofs.hbm_bytes_per_s, x_domain[1]
        rows += [_end("compute", label, x, rate) for x in ends]
    return rows


def _tb_per_s(rate: float) -> str:
    return f"{significant(rate / 1e12)} TB/s"


def _end(line: str, name: str, intensity: float, flops_per_s: float) -> Row:
    return {
        "line": line,
        "name": name,
        "flop_per_byte": rounded(intensity),
        "tflops": rounded(flops_per_s / 1e12),
    }


def _points(
    shown: Sequence[Operation],
    roof_rows: Sequence[Row],
    x_domain: tuple[float, float],
    y_domain: tuple[float, float],
) -> list[Row]:
    def pixel(intensity: float, tflops: float) -> tuple[float, float]:
        return share(intensity, x_domain) * WIDTH, (1 - share(tflops, y_domain)) * _HEIGHT

    spots = [Spot(*pixel(one.intensity, one.tflops), one.name) for one in shown]
    ends = [pixel(row["flop_per_byte"], row["tflops"]) for row in roof_rows]
    lines = [dot for one, other in list(pairwise(ends))[::2] for dot in along(one, other)]
    found = places(spots, WIDTH, _HEIGHT, lines)
    return [_point(one, place) for one, place in zip(shown, found, strict=True)]


def _point(one: Operation, place: str) -> Row:
    return {
        "line": "point",
        "name": one.name,
        "phase": one.phase,
        "flop_per_byte": rounded(one.intensity),
        "tflops": rounded(one.tflops),
        "us": rounded(1e6 * one.seconds),
        "bound": one.bound,
        "measured": one.measured,
        "whole": one.whole,
        "label": place,
    }


def _axes(x_domain: tuple[float, float], y_domain: tuple[float, float]) -> Spec:
    return {"x": log_axis("flop_per_byte", _X, x_domain), "y": log_axis("tflops", _Y, y_domain)}


def _roof_layers(x_domain: tuple[float, float], y_domain: tuple[float, float]) -> list[Spec]:
    axes = _axes(x_domain, y_domain)
    styles: dict[str, Spec] = {
        "hbm": {"strokeWidth": 2},
        "reached": {"strokeWidth": 1.5, "strokeDash": BASELINE_DASH},
        "compute": {"strokeWidth": 2},
    }
    lines: list[Spec] = [
        {
            "transform": [{"filter": {"field": "line", "equal": line}}],
            "mark": {"type": "line", "color": colour("ink"), "clip": True, **look},
            "encoding": {**axes, "detail": {"field": "name", "type": "nominal"}},
        }
        for line, look in styles.items()
    ]
    return [*lines, _slope_label(axes), _roof_labels(axes)]


_WORDS: Spec = {"type": "text", "color": colour("ink"), "fontSize": 12, "baseline": "bottom"}
_NAME: Spec = {"field": "name", "type": "nominal"}


def _slope_label(axes: Spec) -> Spec:
    """Halfway up the slope, on its upper side, where no operation can be."""
    middle = [
        {"op": "mean", "field": f"log_{field}", "as": f"log_{field}"}
        for field in ("flop_per_byte", "tflops")
    ]
    return {
        "transform": [
            {"filter": {"field": "line", "equal": "hbm"}},
            {"calculate": "log(datum.flop_per_byte)", "as": "log_flop_per_byte"},
            {"calculate": "log(datum.tflops)", "as": "log_tflops"},
            {"aggregate": middle, "groupby": ["name"]},
            {"calculate": "exp(datum.log_flop_per_byte)", "as": "flop_per_byte"},
            {"calculate": "exp(datum.log_tflops)", "as": "tflops"},
        ],
        "mark": {**_WORDS, "align": "right", "dx": -8},
        "encoding": {**axes, "text": _NAME},
    }


def _roof_labels(axes: Spec) -> Spec:
    ends = [{"op": "max", "field": field, "as": field} for field in ("flop_per_byte", "tflops")]
    return {
        "transform": [
            {"filter": {"field": "line", "equal": "compute"}},
            {"aggregate": ends, "groupby": ["name"]},
        ],
        "mark": {**_WORDS, "align": "right", "dx": -4, "dy": -4},
        "encoding": {**axes, "text": _NAME},
    }


def _point_layers(x_domain: tuple[float, float], y_domain: tuple[float, float]) -> list[Spec]:
    axes = _axes(x_domain, y_domain)
    names = list(_LOOKS)
    looks: Spec = {
        "color": {
            "field": "phase",
            "type": "nominal",
            "scale": {"domain": names, "range": [colour(role) for role, _ in _LOOKS.values()]},
            "legend": {"title": None},
        },
        "shape": {
            "field": "phase",
            "type": "nominal",
            "scale": {"domain": names, "range": [shape for _, shape in _LOOKS.values()]},
            "legend": {"title": None},
        },
        "size": {
            "condition": {"test": "datum.whole", "value": 190},
            "value": 70,
        },
    }
    tooltip: list[Spec] = [
        {"field": "name", "type": "nominal", "title": "operation"},
        {"field": "phase", "type": "nominal"},
        {"field": "flop_per_byte", "type": "quantitative", "title": "FLOP/byte", "format": ".3~r"},
        {"field": "tflops", "type": "quantitative", "title": "TFLOP/s", "format": ".3~r"},
        {"field": "us", "type": "quantitative", "title": "time (us)", "format": ",.3~r"},
        {"field": "bound", "type": "nominal", "title": "bound by"},
    ]
    points: list[Spec] = [
        {
            "transform": [{"filter": f"datum.line === 'point' && datum.measured === {kept}"}],
            "mark": {"type": "point", "filled": filled, "opacity": 0.85, "strokeWidth": 2},
            "encoding": {**axes, **looks, "tooltip": tooltip},
        }
        for kept, filled in (("true", True), ("false", False))
    ]
    words: list[Spec] = [
        {
            "transform": [{"filter": f"datum.line === 'point' && datum.label === '{place}'"}],
            "mark": {**_WORDS, **look},
            "encoding": {**axes, "text": _NAME},
        }
        for place, look in PLACES.items()
    ]
    return [*points, *words]


def _sentence(gpu: str, roofs: Roofs, shown: Sequence[Operation]) -> str:
    parts = [
        f"{one.name} at {significant(one.intensity)} FLOP/byte reaches {significant(one.tflops)} "
        f"TFLOP/s and is bound by {one.bound}"
        for one in shown
        if one.whole
    ]
    name, rate = max(roofs.flops_per_s.items(), key=lambda pair: pair[1])
    roof = (
        f"Roofline of {gpu}: {_tb_per_s(roofs.hbm_bytes_per_s)} of HBM up to "
        f"{significant(rate / 1e12)} TFLOP/s ({name})"
    )
    return "; ".join([roof, *parts]) + "."
