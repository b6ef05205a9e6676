"""The memory of one GPU at each TP as a Vega-Lite spec: stacked bars against the GPU's limit."""

from collections.abc import Sequence

from twin.report.budget import (
    ACTIVATIONS,
    GRAPHS,
    KV,
    MISSING,
    NON_TORCH,
    PARTS,
    RESERVE,
    WEIGHTS,
    MemoryBudget,
)
from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import Spec, colour
from twin.report.numbers import significant
from twin.units import GIB

_ROLES = {
    WEIGHTS: "hbm",
    ACTIVATIONS: "prefill",
    GRAPHS: "current",
    NON_TORCH: "age",
    KV: "decode",
    MISSING: "slo",
    RESERVE: "launch",
}
_LABELLED = 0.09
"""Share of the axis from which a part has room for its figure."""

_BAR, _ROOM = 46, 40
_LABEL_ROOM = 1.6
"""Times its length: where the words after a bar that does not fit end."""

_LIMIT_DASH = [6, 3]
_BAR_MARK = {"type": "bar", "stroke": colour("ink"), "strokeWidth": 0.5, "height": {"band": 0.7}}


def memory_budget(budgets: Sequence[MemoryBudget], gpu: str, chosen_tp: int) -> Chart:
    """Return a stacked bar a TP, GiB of one GPU; what does not fit lies past the limit.

    Args:
        budgets: by rising TP, all of one kind of GPU.
        gpu: its name, for the limit's label.
        chosen_tp: the TP to point out.
    """
    title = "Memory of one GPU by tensor parallelism"
    if not budgets:
        return Chart("budget", title, {}, [], "No TP divides this network.")
    limit = budgets[0].limit_bytes / GIB
    top = max(limit, *(_end(b) * (1 if b.fits else _LABEL_ROOM) for b in budgets)) * 1.02
    rows = [row for budget in budgets for row in _rows(budget, chosen_tp, top)]
    ends: list[Row] = [
        {"tp": _name(b, chosen_tp), "end_gib": rounded(_end(b))}
        | {"label": f"▲ {significant(b.too_much_bytes / GIB)} GiB too much"}
        for b in budgets
        if not b.fits
    ]
    names = [_name(budget, chosen_tp) for budget in budgets]
    label = f"{gpu}: {significant(limit)} GiB"
    parts = [part for part in PARTS if any(budget.parts[part] for budget in budgets)]
    layers = [*_bars(names, parts, top), _ends(ends, names), *_limit(limit, label)]
    alt = _sentence(budgets, gpu, limit)
    spec = unit_chart(title, alt, rows, {"layer": layers})
    spec["height"] = _BAR * len(budgets) + _ROOM
    return Chart("budget", title, spec, rows, alt, _caption(budgets))


def _end(budget: MemoryBudget) -> float:
    return sum(budget.parts.values()) / GIB


def _name(budget: MemoryBudget, chosen_tp: int) -> str:
    return f"TP {budget.tp}, now" if budget.tp == chosen_tp else f"TP {budget.tp}"


def _rows(budget: MemoryBudget, chosen_tp: int, top: float) -> list[Row]:
    rows: list[Row] = []
    start = 0.0
    for part in PARTS:
        size = budget.parts[part] / GIB
        if size <= 0:
            continue
        wide = size >= _LABELLED * top
        rows.append(
            {
                "tp": _name(budget, chosen_tp),
                "part": part,
                "gib": rounded(size),
                "start_gib": rounded(start),
                "end_gib": rounded(start + size),
                "label": significant(size) if wide else "",
            }
        )
        start += size
    return rows


def _bars(names: list[str], parts: list[str], top: float) -> list[Spec]:
    y: Spec = {"field": "tp", "type": "nominal", "sort": names, "axis": {"title": None}}
    x: Spec = {
        "field": "start_gib",
        "type": "quantitative",
        "scale": {"domain": [0, top], "nice": False},
        "axis": {"title": "Memory of one GPU (GiB)", "tickCount": 6},
    }
    filled = {
        "mark": _BAR_MARK,
        "encoding": {
            "x": x,
            "x2": {"field": "end_gib"},
            "y": y,
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": {"domain": parts, "range": [colour(_ROLES[part]) for part in parts]},
                "legend": {"title": None, "columns": 3},
            },
            "tooltip": [
                {"field": "tp", "type": "nominal", "title": "ranks"},
                {"field": "part", "type": "nominal"},
                {"field": "gib", "type": "quantitative", "title": "GiB", "format": ",.3~r"},
            ],
        },
    }
    figures = {
        "transform": [
            {"filter": "datum.label != ''"},
            {"calculate": "(datum.start_gib + datum.end_gib) / 2", "as": "middle"},
        ],
        "mark": {"type": "text", "fontSize": 12, "fontWeight": 600, "color": "#000000"},
        "encoding": {
            "x": {"field": "middle", "type": "quantitative"},
            "y": y,
            "text": {"field": "label"},
        },
    }
    return [filled, figures]


def _ends(ends: list[Row], names: list[str]) -> Spec:
    """What each bar that does not fit has too much, after its end."""
    return {
        "data": {"values": ends},
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "middle",
            "dx": 5,
            "fontSize": 12,
            "color": colour("ink"),
        },
        "encoding": {
            "x": {"field": "end_gib", "type": "quantitative"},
            "y": {"field": "tp", "type": "nominal", "sort": names},
            "text": {"field": "label"},
        },
    }


def _limit(limit: float, label: str) -> list[Spec]:
    at = {"datum": limit, "type": "quantitative"}
    once: Spec = {"values": [{}]}
    rule = {
        "type": "rule",
        "aria": False,
        "color": colour("ink"),
        "strokeDash": _LIMIT_DASH,
        "strokeWidth": 2,
    }
    text = {"type": "text", "text": label, "align": "right", "baseline": "bottom", "dy": -3}
    return [
        {"data": once, "mark": rule, "encoding": {"x": at}},
        {
            "data": once,
            "mark": {**text, "fontSize": 12, "y": 0, "color": colour("ink")},
            "encoding": {"x": at},
        },
    ]


def _sentence(budgets: Sequence[MemoryBudget], gpu: str, limit: float) -> str:
    told = "; ".join(
        f"TP {b.tp} leaves {significant(b.parts[KV] / GIB)} GiB for KV"
        if b.fits
        else f"TP {b.tp} does not fit, {significant(b.too_much_bytes / GIB)} GiB too much"
        for b in budgets
    )
    return f"Memory of one {gpu} with {significant(limit)} GiB: {told}."


def _caption(budgets: Sequence[MemoryBudget]) -> str:
    words = "Reserve: what the engine leaves to others (utilisation)."
    if all(budget.fits for budget in budgets):
        return words
    return f"{words} KV missing: what the KV cache lacks to hold one request of max_model_len."
