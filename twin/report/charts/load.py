"""Latencies and goodput over the load offered, as stacked panels that share their x axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twin.report.charts.chart import Chart, Row, rounded
from twin.report.charts.load_panels import (
    LatencyMarks,
    LatencyPanel,
    line_and_points,
    load_axis,
)
from twin.report.charts.style import SCHEMA, SLO_DASH, WIDTH, Spec, colour
from twin.report.numbers import limit, seconds
from twin.report.numbers import load as load_words

_HEIGHTS = (200, 140)
"""Of the first panel, and of each below it."""


@dataclass(frozen=True, slots=True)
class LoadRow:
    """One load of a run.

    Attributes:
        offered: the load, in the chart's unit.
        ttft_s: at the chart's percentile; None: nothing was served.
        goodput_per_s: requests a second within the SLO; None: not known.
        holds: whether the SLO is met; None: there is none.
        tpot_s: at its percentile; None: not known.
    """

    offered: float
    ttft_s: float | None
    goodput_per_s: float | None
    holds: bool | None = None
    tpot_s: float | None = None


@dataclass(frozen=True, slots=True)
class LoadMarks:
    """What a load chart marks beside its lines.

    Attributes:
        unit: of the load: req/s, or clients.
        ttft: its percentile, limit and error.
        tpot: likewise; None: TPOT has no limit and gets no panel.
        knee: load up to which the last run's goodput follows; None: no rule is drawn.
        basis: the caption of the error bands: what the errors were measured on.
    """

    unit: str = "req/s"
    ttft: LatencyMarks = field(default_factory=LatencyMarks)
    tpot: LatencyMarks | None = None
    knee: float | None = None
    basis: str = ""


def load_chart(
    runs: Mapping[str, Sequence[LoadRow]], marks: LoadMarks, name: str = "load"
) -> Chart:
    """Return TTFT (log), TPOT (log) where it has a limit, and goodput over the load offered.

    Args:
        runs: loads in ascending order, by run name; of two, the first is the baseline (grey,
            dashed).
        marks: unit, limits, knee and error bands.
        name: key of the chart.
    """
    title = "Latency and goodput by load"
    drawn = {run: points for run, points in runs.items() if points}
    panels = _latency_panels(drawn, marks)
    if not panels:
        return Chart(name, title, {}, [], "No load was served.")
    rows = _rows(drawn, panels)
    loads = [point.offered for points in drawn.values() for point in points]
    alt = _sentence(drawn, panels, marks)
    latencies = [panel.spec(loads, _HEIGHTS[min(place, 1)]) for place, panel in enumerate(panels)]
    spec: Spec = {
        "$schema": SCHEMA,
        "title": title,
        "description": alt,
        "data": {"values": rows},
        "vconcat": [*latencies, _goodput_panel(list(drawn), marks, loads)],
        "resolve": {"scale": {"x": "shared"}},
        "spacing": 12,
    }
    caption = "One run a load, all with the same seed; lines between them are no forecast."
    if any(row["slo"] == "missed" for row in rows):
        caption += " ▲: misses the SLO."
    if any(panel.marks.error is not None for panel in panels):
        caption += f" Band: {marks.basis}."
    return Chart(name, title, spec, rows, alt, caption)


def _latency_panels(runs: Mapping[str, Sequence[LoadRow]], marks: LoadMarks) -> list[LatencyPanel]:
    """Return the panels that have something to show, TTFT first; none where TTFT has nothing."""
    ttft = {run: [point.ttft_s for point in points] for run, points in runs.items()}
    tpot = {run: [point.tpot_s for point in points] for run, points in runs.items()}
    panels = [LatencyPanel("TTFT", marks.ttft, ttft)]
    if marks.tpot is not None:
        panels.append(LatencyPanel("TPOT", marks.tpot, tpot))
    return [panel for panel in panels if panel.known_s] if panels[0].known_s else []


def _rows(runs: Mapping[str, Sequence[LoadRow]], panels: Sequence[LatencyPanel]) -> list[Row]:
    rows: list[Row] = []
    for run, points in runs.items():
        for index, point in enumerate(points):
            row: Row = {"run": run, "offered": rounded(point.offered)}
            for panel in panels:
                row.update(panel.cells(run, index))
            good = point.goodput_per_s
            row["goodput_per_s"] = None if good is None else rounded(good)
            row["slo"] = {True: "met", False: "missed", None: "none"}[point.holds]
            rows.append(row)
    return rows


def _goodput_panel(runs: list[str], marks: LoadMarks, loads: Sequence[float]) -> Spec:
    y: Spec = {
        "field": "goodput_per_s",
        "type": "quantitative",
        "scale": {"zero": True},
        "axis": {"title": "Goodput (req/s)", "tickCount": 4},
    }
    layers = line_and_points(runs, load_axis(loads, marks.unit), y, "goodput_per_s")
    if marks.knee is not None:
        layers += _knee_layers(
            marks.knee, f"knee {load_words(marks.knee, marks.unit)} {marks.unit}", loads
        )
    return {"width": WIDTH, "height": _HEIGHTS[1], "layer": layers}


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


def _sentence(
    runs: Mapping[str, Sequence[LoadRow]], panels: Sequence[LatencyPanel], marks: LoadMarks
) -> str:
    names = " and ".join([", ".join(panel.name for panel in panels), "goodput"])
    parts = [_run_words(run, points, panels, marks.unit) for run, points in runs.items()]
    limits = [
        f"{panel.name} {limit(panel.marks.slo_s)}"
        for panel in panels
        if panel.marks.slo_s is not None
    ]
    rest = f"; the SLO is {' and '.join(limits)}" if limits else ""
    if marks.knee is not None:
        rest += (
            f"; goodput follows the load up to {load_words(marks.knee, marks.unit)} {marks.unit}"
        )
    return f"{names} by load; {'; '.join(parts)}{rest}."


def _run_words(
    run: str, points: Sequence[LoadRow], panels: Sequence[LatencyPanel], unit: str
) -> str:
    """Return the latencies of a run at its lowest and highest load."""
    low, high = (load_words(points[end].offered, unit) for end in (0, -1))
    parts = []
    for place, panel in enumerate(panels):
        values = panel.values_s[run]
        there = (f" at {low}", f" at {high} {unit}") if place == 0 else ("", "")
        parts.append(
            f"{panel.title} {seconds(values[0])}{there[0]} and {seconds(values[-1])}{there[1]}"
        )
    return f"{run}: {', '.join(parts)}"
