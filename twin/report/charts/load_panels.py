"""Panels of a load chart: their shared x axis, lines and points, and a latency with its limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twin.report.charts.chart import Row, rounded
from twin.report.charts.style import (
    BASELINE_DASH,
    WIDTH,
    Spec,
    colour,
    latency_unit,
    log_axis,
    log_domain,
    slo_layers,
)
from twin.report.numbers import limit, percentile_name

_WIDE = 20
"""Loads that span more than this are on a log axis."""


@dataclass(frozen=True, slots=True)
class LatencyMarks:
    """What a panel of a latency marks.

    Attributes:
        percentile: which one is drawn.
        slo_s: its limit, seconds; None: there is none.
        error: relative error of the last run, drawn as a band from x/(1+e) to x·(1+e); None: none
            is known.
    """

    percentile: float = 99.0
    slo_s: float | None = None
    error: float | None = None


@dataclass(frozen=True, slots=True)
class LatencyPanel:
    """One latency (log) over the load.

    Attributes:
        name: TTFT or TPOT.
        marks: percentile, limit and error.
        values_s: seconds by run name, one a load; None: nothing was served.
    """

    name: str
    marks: LatencyMarks
    values_s: Mapping[str, Sequence[float | None]]

    @property
    def known_s(self) -> list[float]:
        """Every value that there is, seconds."""
        return [value for one in self.values_s.values() for value in one if value is not None]

    @property
    def title(self) -> str:
        """Percentile and name."""
        return f"{percentile_name(self.marks.percentile)} {self.name}"

    def cells(self, run: str, index: int) -> Row:
        """Return value and band of a load, in the panel's unit, by field name."""
        value, (unit, factor, _) = self.values_s[run][index], self._scale()
        wide = 1 + ((self.marks.error or 0.0) if run == list(self.values_s)[-1] else 0.0)
        key = self.name.lower()
        factors = {"": factor, "_low": factor / wide, "_high": factor * wide}
        return {
            f"{key}{side}_{unit}": None if value is None else rounded(value * times)
            for side, times in factors.items()
        }

    def spec(self, loads: Sequence[float], height: int) -> Spec:
        """Return the panel; the labels of its x axis are left to the panel below.

        Args:
            loads: all that are drawn, in any order.
            height: pixels.
        """
        runs, (unit, factor, domain) = list(self.values_s), self._scale()
        field, low, high = (f"{self.name.lower()}{side}_{unit}" for side in ("", "_low", "_high"))
        x, y = load_axis(loads, None), log_axis(field, f"{self.title} ({unit})", domain)
        layers = line_and_points(runs, x, y, field)
        if self.marks.error is not None:
            band: Spec = {
                "transform": [
                    {"filter": {"field": "run", "equal": runs[-1]}},
                    {"filter": f"isValid(datum.{low})"},
                ],
                "mark": {"type": "area", "color": colour("current"), "opacity": 0.2, "clip": True},
                "encoding": {"x": x, "y": {**y, "field": low}, "y2": {"field": high}},
            }
            layers.insert(0, band)
        if self.marks.slo_s is not None:
            label = f"{self.name} SLO {limit(self.marks.slo_s)}"
            layers += slo_layers("y", self.marks.slo_s * factor, label, domain)
        return {"width": WIDTH, "height": height, "layer": layers}

    def _scale(self) -> tuple[str, float, tuple[float, float]]:
        """Return (unit, its factor from seconds, domain in it); limit and band are inside."""
        known, spread, slo_s = self.known_s, 1 + (self.marks.error or 0.0), self.marks.slo_s
        edges_s = [min(known) / spread, max(known) * spread, *([slo_s] if slo_s else [])]
        unit, factor = latency_unit(max(edges_s))
        return unit, factor, log_domain(min(edges_s) * factor, max(edges_s) * factor)


def load_axis(loads: Sequence[float], unit: str | None) -> Spec:
    """Return the shared x axis; without a unit its labels are left to the panel below."""
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


def line_and_points(runs: list[str], x: Spec, y: Spec, field: str) -> list[Spec]:
    """Return the layers that draw `field` of each run; of two, the first is the baseline."""
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
