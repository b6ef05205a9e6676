"""How charts look: palette, light and dark themes, axes, labelled limits.

Okabe-Ito colours and greys; marks that stand alone have a contrast of at least 3:1 on both
backgrounds, and no difference is told by colour alone.
"""

import copy
import math
from typing import Any, Literal

Theme = Literal["light", "dark"]
Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
BACKGROUND = {"light": "#FFFFFF", "dark": "#0E1117"}
INK = {"light": "#1F2328", "dark": "#E6E8EB"}
GRID = {"light": "#E3E5E8", "dark": "#2A2F37"}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

PALETTE = {
    "baseline": {"light": "#595959", "dark": "#B8B8B8"},
    "current": {"light": "#0072B2", "dark": "#56B4E9"},
    "slo": {"light": "#D55E00", "dark": "#D55E00"},
    "prefill": {"light": "#CC79A7", "dark": "#CC79A7"},
    "decode": {"light": "#009E73", "dark": "#009E73"},
    "cost": {"light": "#8A6100", "dark": "#E69F00"},
    "age": {"light": "#6A3D9A", "dark": "#B79CE0"},
    # What binds a step: fills only, told apart by tooltip and legend order too.
    "compute": {"light": "#0072B2", "dark": "#56B4E9"},
    "hbm": {"light": "#E69F00", "dark": "#E69F00"},
    "link": {"light": "#F0E442", "dark": "#F0E442"},
    "launch": {"light": "#8C8C8C", "dark": "#8C8C8C"},
}

BASELINE_DASH = [5, 3]
SLO_DASH = [10, 4]
WIDTH, HEIGHT = 560, 260

_TICKS = (1.0, 2.0, 5.0)


def colour(role: str) -> Spec:
    """Return a colour as a parameter of the chart, so that one spec serves both themes."""
    return {"expr": f"colour_{role}"}


def themed(spec: Spec, theme: Theme = "light") -> Spec:
    """Return `spec` with the palette, fonts and background of a theme.

    Specs name colours by role (`colour`); data and encodings are the same in both themes.
    """
    dressed = copy.copy(spec)
    dressed["params"] = [*spec.get("params", []), *palette_params(theme)]
    dressed["config"] = theme_config(theme)
    return dressed


def palette_params(theme: Theme) -> list[Spec]:
    """Return the Vega-Lite parameters that give each role its colour."""
    roles = {**PALETTE, "ink": INK}
    return [{"name": f"colour_{role}", "value": tones[theme]} for role, tones in roles.items()]


def theme_config(theme: Theme) -> Spec:
    """Return the Vega-Lite config of a theme."""
    ink, grid = INK[theme], GRID[theme]
    return {
        "background": BACKGROUND[theme],
        "font": FONT,
        "view": {"stroke": None},
        "title": {
            "color": ink,
            "fontSize": 15,
            "fontWeight": 600,
            "anchor": "start",
            "offset": 12,
            "subtitleColor": ink,
        },
        "axis": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "gridColor": grid,
            "domainColor": ink,
            "tickColor": ink,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "orient": "top",
        },
        "text": {"color": ink, "fontSize": 12},
    }


def log_ticks(low: float, high: float) -> list[float]:
    """Return the ticks 1, 2, 5 times powers of ten inside [low, high], at most about a dozen.

    Wide ranges keep only the powers of ten.
    """
    if not 0 < low <= high:
        return []
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = _TICKS if last - first <= 4 else (1.0,)
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def log_domain(low: float, high: float) -> tuple[float, float]:
    """Return the domain from the 1-2-5 tick at or below `low` to the one at or above `high`."""
    below = max(t for t in _ladder(low) if t <= low * (1 + 1e-9))
    above = min(t for t in _ladder(high) if t >= high * (1 - 1e-9))
    return below, above if above > below else below * 10


def _ladder(near: float) -> list[float]:
    power = math.floor(math.log10(near))
    return [float(f"{step}e{p}") for p in (power - 1, power, power + 1) for step in _TICKS]


def latency_unit(highest_s: float) -> tuple[str, float]:
    """Return the unit of a latency axis and its factor from seconds: one unit an axis."""
    return ("ms", 1e3) if highest_s < 10 else ("s", 1.0)


def log_axis(field: str, title: str, domain: tuple[float, float]) -> Spec:
    """Return a log-scaled quantitative encoding with 1-2-5 ticks and plain number labels."""
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "domain": list(domain), "clamp": True, "nice": False},
        "axis": {
            "title": title,
            "values": log_ticks(*domain),
            "labelExpr": "format(datum.value, ',~r')",
            "labelOverlap": True,
        },
    }


def time_axis(field: str = "t_s", title: str = "Time since start (s)") -> Spec:
    """Return the encoding of a simulated time."""
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"nice": False, "zero": False},
        "axis": {"title": title, "tickCount": 8, "grid": False},
    }


def slo_layers(
    channel: Literal["x", "y"], at: float, label: str, domain: tuple[float, float]
) -> list[Spec]:
    """Return a long-dashed rule at a limit and its label, on a log axis of that `domain`."""
    datum = {"datum": at, "type": "quantitative"}
    place: Spec = {"align": "left", "baseline": "bottom", "dy": -3, "x": 4}
    if channel == "x":
        # A rising curve leaves the top left and the bottom right of its chart free.
        right = at * at > domain[0] * domain[1]
        place = (
            {"align": "left", "dx": 5, "baseline": "top", "y": 2}
            if not right
            else {"align": "right", "dx": -5, "baseline": "bottom", "y": {"expr": "height - 4"}}
        )
    rule = {
        "type": "rule",
        "aria": False,
        "color": colour("slo"),
        "strokeDash": SLO_DASH,
        "strokeWidth": 1.5,
    }
    # A row of its own: with the chart's data, rule and label would be drawn once a row.
    once: Spec = {"values": [{}]}
    return [
        {"data": once, "mark": rule, "encoding": {channel: datum}},
        {
            "data": once,
            "mark": {
                "type": "text",
                "text": label,
                "fontSize": 12,
                "color": colour("ink"),
                **place,
            },
            "encoding": {channel: datum},
        },
    ]
