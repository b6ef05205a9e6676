"""Measured kernels against what a model says of them, which did not see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twin.report.charts.chart import MAX_MARKS, Chart, Row, rounded, unit_chart
from twin.report.charts.style import BASELINE_DASH, Spec, colour, log_axis, log_domain
from twin.report.numbers import count, significant

LOOKS: dict[str, tuple[str, str]] = {
    "gemm": ("current", "circle"),
    "gemm fp8": ("age", "square"),
    "prefill": ("prefill", "triangle-up"),
    "decode": ("decode", "diamond"),
    "experts": ("cost", "cross"),
    "all-reduce": ("launch", "triangle-down"),
}
"""Colour and shape of each family of kernels: none is told by its colour alone."""

_MEASURED, _MODELLED, _RATIO = "Measured (us)", "Modelled (us)", "Modelled / measured"


@dataclass(frozen=True, slots=True)
class Compared:
    """One measured kernel.

    Attributes:
        family: of `LOOKS`.
        shape: in words.
        measured_s: as measured.
        modelled_s: as priced by what did not see it.
    """

    family: str
    shape: str
    measured_s: float
    modelled_s: float


def measured_against_modelled(name: str, points: Sequence[Compared]) -> Chart:
    """Return modelled over measured time on logarithmic axes, with the line where both agree.

    Args:
        name: of what was measured, for the caption.
        points: at most `MAX_MARKS` less one.
    """
    title = "Modelled against measured"
    if not points:
        return Chart("modelled", title, {}, [], "No single kernel was measured.")
    rows, caption = _rows(name, points)
    times = [row[key] for row in rows for key in ("measured_us", "modelled_us")]
    domain = log_domain(min(times), max(times))
    agree: Spec = {
        "data": {"values": [{"at": end} for end in domain]},
        "mark": {"type": "line", "color": colour("ink"), "strokeDash": BASELINE_DASH},
        "encoding": {
            "x": log_axis("at", _MEASURED, domain),
            "y": log_axis("at", _MODELLED, domain),
        },
    }
    y = log_axis("modelled_us", _MODELLED, domain)
    cloud = _cloud(rows, log_axis("measured_us", _MEASURED, domain), y)
    alt = _sentence(points)
    spec = unit_chart(title, alt, rows, {"layer": [agree, cloud]})
    return Chart("modelled", title, spec, rows, alt, f"{caption} Dashed: both agree.")


def modelled_ratio(name: str, points: Sequence[Compared]) -> Chart:
    """Return how far modelled lies from measured time, over the measured time.

    Args:
        name: of what was measured, for the caption.
        points: at most `MAX_MARKS` less one.
    """
    title = "Modelled over measured"
    if not points:
        return Chart("modelled_ratio", title, {}, [], "No single kernel was measured.")
    rows, caption = _rows(name, points)
    times, ratios = ([row[key] for row in rows] for key in ("measured_us", "ratio"))
    _, widest = log_domain(1.0, max(max(ratios), 1 / min(ratios)))
    y = log_axis("ratio", _RATIO, (rounded(1 / widest), widest))
    y["axis"]["labelOverlap"] = False
    x = log_axis("measured_us", _MEASURED, log_domain(min(times), max(times)))
    agree: Spec = {
        "data": {"values": [{}]},
        "mark": {
            "type": "rule",
            "aria": False,
            "color": colour("ink"),
            "strokeDash": BASELINE_DASH,
        },
        "encoding": {"y": {"datum": 1}},
    }
    alt = _sentence(points)
    spec = unit_chart(title, alt, rows, {"layer": [agree, _cloud(rows, x, y)]})
    return Chart("modelled_ratio", title, spec, rows, alt, f"{caption} Dashed: both agree.")


def _rows(name: str, points: Sequence[Compared]) -> tuple[list[Row], str]:
    if len(points) >= MAX_MARKS:
        raise ValueError(f"{len(points)} points; fewer than {MAX_MARKS} can be drawn")
    rows: list[Row] = [
        {
            "family": one.family,
            "shape": one.shape,
            "measured_us": rounded(1e6 * one.measured_s),
            "modelled_us": rounded(1e6 * one.modelled_s),
            "ratio": rounded(one.modelled_s / one.measured_s),
        }
        for one in points
    ]
    return rows, f"{name}: {count(len(rows))} held-out points, picked evenly."


def _cloud(rows: Sequence[Row], x: Spec, y: Spec) -> Spec:
    families = list(dict.fromkeys(row["family"] for row in rows))

    def scale(values: list[object]) -> Spec:
        return {
            "field": "family",
            "type": "nominal",
            "scale": {"domain": families, "range": values},
            "legend": {"title": None, "symbolSize": 60, "columns": 3},
        }

    tooltip = [
        {"field": "family", "type": "nominal"},
        {"field": "shape", "type": "nominal"},
        {"field": "measured_us", "type": "quantitative", "title": _MEASURED, "format": ",.3~r"},
        {"field": "modelled_us", "type": "quantitative", "title": _MODELLED, "format": ",.3~r"},
        {"field": "ratio", "type": "quantitative", "title": _RATIO, "format": ".3~r"},
    ]
    return {
        "mark": {"type": "point", "filled": True, "size": 28, "opacity": 0.6, "clip": True},
        "encoding": {
            "x": x,
            "y": y,
            "color": scale([colour(LOOKS[family][0]) for family in families]),
            "shape": scale([LOOKS[family][1] for family in families]),
            "tooltip": tooltip,
        },
    }


def _sentence(points: Sequence[Compared]) -> str:
    parts = [
        f"{family} {significant(100 * error, 2)} %"
        for family, error in median_errors(points).items()
    ]
    return (
        f"{count(len(points))} measured kernels against a model that did not see them; median "
        f"error of these points: {', '.join(parts)}."
    )


def median_errors(points: Sequence[Compared]) -> Mapping[str, float]:
    """Return the median relative error of each family's points."""
    errors: dict[str, list[float]] = {}
    for one in points:
        errors.setdefault(one.family, []).append(abs(one.modelled_s / one.measured_s - 1))
    return {family: sorted(found)[len(found) // 2] for family, found in errors.items()}
