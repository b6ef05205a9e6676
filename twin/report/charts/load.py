"""Latency and goodput over the load offered, as stacked panels that share their x axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twin.report.charts.chart import Chart, Row, rounded
from twin.report.charts.style import (
    BASELINE_DASH,
    SCHEMA,
    SLO_DASH,
    WIDTH,
    Spec,
    colour,
    latency_unit,
    log_axis,
    log_domain,
    slo_layers,
)
from twin.report.numbers import limit, percentile_name, seconds
from twin.report.numbers import load as load_words

_WIDE = 20
"""Loads that span more than this are on a log axis."""
_HEIGHTS = (200, 140)


@dataclass(frozen=True, slots=True)
class LoadRow:
    """One load of a run.

    Attributes:
        offered: the load, in the chart's unit.
        ttft_s: at the chart's percentile; None: nothing was served.
        goodput_per_s: requests a second within the SLO; None: not known.
        holds: whether the SLO is met; None: there is none.
    """

    offered: float
    ttft_s: float | None
    goodput_per_s: float | None
    holds: bool | None = None


@dataclass(frozen=True, slots=True)
class LoadMarks:
    """What a load chart marks beside its lines.

    Attributes:
        unit: of the load: req/s, or clients.
        percentile: of the TTFT.
        slo_s: its limit; None: there is none.
        knee: load up to which the last run's goodput follows; None: no rule is drawn.
        error: relative error of the last run's TTFT, drawn as a band from x/(1+e) to x·(1+e);
            None: none is known.
        basis: the caption of that band: what the error was measured on.
    """

    unit: str = "req/s"
    percentile: float = 99.0
    slo_s: float | None = None
    knee: float | None = None
    error: float | None = None
    basis: str = ""


def load_chart(
    runs: Mapping[str, Sequence[LoadRow]], marks: LoadMarks, name: str = "load"
) -> Chart:
    """Return TTFT (log) and goodput over the load offered.

    Args:
        runs: loads in ascending order, by run name; of two, the first is the baseline (grey,
            dashed).
        marks: unit, limit, knee and error band.
        name: key of the chart.
    """
    title = "Latency and goodput by load"
    drawn = {run: points for run, points in runs.items() if points}
    served = [p.ttft_s for points in drawn.values() for p in points if p.ttft_s is not None]
    if not served:
        return Chart(name, title, {}, [], "No load was served.")
    spread = 1 + (marks.error or 0.0)
    edges_s = [min(served) / spread, max(served) * spread, *([marks.slo_s] if marks.slo_s else [])]
    unit, factor = latency_unit(max(edges_s))
    domain = log_domain(min(edges_s) * factor, max(edges_s) * factor)
    rows = _rows(drawn, unit, factor, marks.error)
    loads = [point.offered for points in drawn.values() for point in points]
    alt = _sentence(drawn, marks)
    spec: Spec = {
        "$schema": SCHEMA,
        "title": title,
        "description": alt,
        "data": {"values": rows},
        "vconcat": [
            _ttft_panel(list(drawn), marks, unit, factor, domain, loads),
            _goodput_panel(list(drawn), marks, loads),
        ],
        "resolve": {"scale": {"x": "shared"}},
        "spacing": 12,
    }
    caption = "One run a load, all with the same seed; lines between them are no forecast."
    if any(row["slo"] == "missed" for row in rows):
        caption += " ▲: misses the SLO."
    if marks.error is not None:
        caption += f" Band: {marks.basis}."
    return Chart(name, title, spec, rows, alt, caption)


def _rows(
    runs: Mapping[str, Sequence[LoadRow]], unit: str, factor: float, error: float | None
) -> list[Row]:
    last = list(runs)[-1]
    rows: list[Row] = []
    for run, points in runs.items():
        wide = 1 + ((error or 0.0) if run == last else 0.0)
        for point in points:
            ttft = None if point.ttft_s is None else point.ttft_s * factor
            rows.append(
                {
                    "run": run,
                    "offered": rounded(point.offered),
                    f"ttft_{unit}": None if ttft is None else rounded(ttft),
                    f"low_{unit}": None if ttft is None else rounded(ttft / wide),
                    f"high_{unit}": None if ttft is None else rounded(ttft * wide),
                    "goodput_per_s": (
                        None if point.goodput_per_s is None else rounded(point.goodput_per_s)
                    ),
                    "slo": {True: "met", False: "missed", None: "none"}[point.holds],
                }
            )
    return rows


def _load_axis(loads: Sequence[float], unit: str | None) -> Spec:
    """The shared x axis; without a unit its labels are left to the panel below."""
    title = {"req/s": "Load offered (req/s)", "clients": "Clients"}.get(unit or "", unit)
    low, high = min(loads), max(loads)
    if high > _WIDE * low:
        axis = log_axis("offered", title or "", log_domain(low, high))
    else:
        axis = {
            "field": "offered",
            "type": "quantitative",
            "scale": {"domain": [0, high * 1.02], "nice": False},
            "axis": {"title": title, "tickCount": 8},
        }
    if unit is None:
        axis["axis"] = {**axis["axis"], "title": None, "labels": False, "ticks": False}
    return axis


def _ttft_panel(
    runs: list[str],
    marks: LoadMarks,
    unit: str,
    factor: float,
    domain: tuple[float, float],
    loads: Sequence[float],
) -> Spec:
    title = f"{percentile_name(marks.percentile)} TTFT ({unit})"
    x = _load_axis(loads, None)
    layers = _line_and_points(runs, x, log_axis(f"ttft_{unit}", title, domain), f"ttft_{unit}")
    if marks.error is not None:
        band: Spec = {
            "transform": [
                {"filter": {"field": "run", "equal": runs[-1]}},
                {"filter": f"isValid(datum.low_{unit})"},
            ],
            "mark": {"type": "area", "color": colour("current"), "opacity": 0.2, "clip": True},
            "encoding": {
                "x": x,
                "y": log_axis(f"low_{unit}", title, domain),
                "y2": {"field": f"high_{unit}"},
            },
        }
        layers.insert(0, band)
    if marks.slo_s is not None:
        layers += slo_layers("y", marks.slo_s * factor, f"SLO {limit(marks.slo_s)}", domain)
    return {"width": WIDTH, "height": _HEIGHTS[0], "layer": layers}


def _goodput_panel(runs: list[str], marks: LoadMarks, loads: Sequence[float]) -> Spec:
    y: Spec = {
        "field": "goodput_per_s",
        "type": "quantitative",
        "scale": {"zero": True},
        "axis": {"title": "Goodput (req/s)", "tickCount": 4},
    }
    layers = _line_and_points(runs, _load_axis(loads, marks.unit), y, "goodput_per_s")
    if marks.knee is not None:
        layers += _knee_layers(
            marks.knee, f"knee {load_words(marks.knee, marks.unit)} {marks.unit}", loads
        )
    return {"width": WIDTH, "height": _HEIGHTS[1], "layer": layers}


def _line_and_points(runs: list[str], x: Spec, y: Spec, field: str) -> list[Spec]:
    roles, dashes = ["baseline", "current"][-len(runs) :], [BASELINE_DASH, [1, 0]][-len(runs) :]
    legend: Spec | None = None if len(runs) == 1 else {"title": None, "symbolType": "stroke"}
    colours: Spec = {
        "field": "run",
        "type": "nominal",
        "scale": {"domain": runs, "range": [colour(role) for role in roles]},
        "legend": legend,
    }
    dash: Spec = {**colours, "scale": {"domain": runs, "range": dashes}}
    tooltip = [
        {"field": "run", "type": "nominal"},
        {"field": "offered", "type": "quantitative", "title": "load", "format": ".4~g"},
        {"field": field, "type": "quantitative", "format": ".4~g"},
        {"field": "slo", "type": "nominal", "title": "SLO"},
    ]
    valid = [{"filter": f"isValid(datum.{field})"}]
    # Loads that miss the SLO are triangles: no difference is told by colour alone.
    shape: Spec = {
        "condition": {"test": "datum.slo == 'missed'", "value": "triangle-up"},
        "value": "circle",
    }
    return [
        {
            "transform": valid,
            "mark": {"type": "line", "strokeWidth": 2, "clip": True},
            "encoding": {"x": x, "y": y, "color": colours, "strokeDash": dash},
        },
        {
            "transform": valid,
            "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1, "clip": True},
            "encoding": {"x": x, "y": y, "color": colours, "shape": shape, "tooltip": tooltip},
        },
    ]


def _knee_layers(at: float, label: str, loads: Sequence[float]) -> list[Spec]:
    """A rule where goodput stops following, its label above the panel where nothing is drawn."""
    right = at > (min(loads) + max(loads)) / 2
    place: Spec = {"align": "right", "dx": -5} if right else {"align": "left", "dx": 5}
    datum = {"x": {"datum": at, "type": "quantitative"}}
    once: Spec = {"values": [{}]}  # else rule and label would be drawn once a row
    text = {"type": "text", "text": label, "baseline": "bottom", "fontSize": 12, **place}
    return [
        {
            "data": once,
            "mark": {
                "type": "rule",
                "aria": False,
                "color": colour("ink"),
                "strokeDash": SLO_DASH[::-1],
            },
            "encoding": datum,
        },
        {
            "data": once,
            "mark": {**text, "color": colour("ink"), "y": -3},
            "encoding": datum,
        },
    ]


def _sentence(runs: Mapping[str, Sequence[LoadRow]], marks: LoadMarks) -> str:
    name = percentile_name(marks.percentile)
    parts = []
    for run, points in runs.items():
        first, last = points[0], points[-1]
        parts.append(
            f"{run}: {name} TTFT {seconds(first.ttft_s)} at "
            f"{load_words(first.offered, marks.unit)} and {seconds(last.ttft_s)} at "
            f"{load_words(last.offered, marks.unit)} {marks.unit}"
        )
    rest = f"; the SLO is {limit(marks.slo_s)}" if marks.slo_s is not None else ""
    if marks.knee is not None:
        rest += (
            f"; goodput follows the load up to {load_words(marks.knee, marks.unit)} {marks.unit}"
        )
    return f"TTFT and goodput by load; {'; '.join(parts)}{rest}."
