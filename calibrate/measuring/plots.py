"""Measured against fitted, as charts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from calibrate.holdout import FAMILIES, price_rows
from calibrate.measuring.memory_fit import PAGE_BYTES
from calibrate.measuring.session import DRY_RUN
from hwmodels.profile import HardwareProfile, Table
from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import Spec, colour, log_axis, log_domain

_CURVES = 6
"""Most curves of a chart: more can't be told apart."""
_WIDEST_PCT = 60.0
_BINS = 30


def profile_charts(profile: HardwareProfile) -> list[Chart]:
    """Return the charts of a profile; a chart whose tables are missing says so and is empty."""
    charts = [
        _gemm(profile),
        _decode(profile),
        _prefill(profile),
        _bandwidth(profile),
        _latency(profile),
        ratios(profile),
    ]
    return [_marked(chart) if profile.engine == DRY_RUN else chart for chart in charts]


def _marked(chart: Chart) -> Chart:
    """A chart of pretended seconds says so itself: pictures travel without their page."""
    title = f"{chart.title} (dry run: pretended)"
    spec = {**chart.spec, "title": title} if chart.spec else chart.spec
    return replace(chart, title=title, spec=spec)


def _gemm(profile: HardwareProfile) -> Chart:
    table = profile.tables.get("gemm.bf16")
    return _against_form(
        profile, "gemm", "Products: time over rows", "gemm.bf16", table, "m", "rows m",
        lambda row: f"n {row['n']}, k {row['k']}",
    )  # fmt: skip


def _decode(profile: HardwareProfile) -> Chart:
    table = _of_one_pair(profile.tables.get("decode.128.bf16"))
    return _against_form(
        profile, "decode", "Decode attention: time over context", "decode.128.bf16", table,
        "length", "context of each sequence (tokens)", lambda row: f"batch {row['batch']}",
    )  # fmt: skip


def _prefill(profile: HardwareProfile) -> Chart:
    table = _of_one_pair(profile.tables.get("prefill.128.bf16"))
    return _against_form(
        profile, "prefill", "Prefill attention: time over length", "prefill.128.bf16", table,
        "length", "prompt (tokens)", lambda row: f"batch {row['batch']}",
    )  # fmt: skip


def _of_one_pair(table: Table | None) -> Table | None:
    """The rows of the pair of head counts that has most of them."""
    if table is None or not len(table["seconds"]):
        return None
    codes = table["heads"].astype(np.int64) * 2**16 + table["kv_heads"].astype(np.int64)
    values, counts = np.unique(codes, return_counts=True)
    mine = codes == values[int(counts.argmax())]
    return {name: column[mine] for name, column in table.items()}


def _against_form(
    profile: HardwareProfile,
    name: str,
    title: str,
    table_name: str,
    table: Table | None,
    axis: str,
    label: str,
    curve_of: Callable[[Row], str],
) -> Chart:
    """Points as measured, and a line by the fitted form alone, by curve."""
    if table is None or not len(table["seconds"]):
        return Chart(name, title, {}, [], "Not measured.")
    form = signed_ratios(replace(profile, tables={}), table_name, table)
    rows = []
    for values, ratio in zip(zip(*table.values(), strict=True), form.tolist(), strict=True):
        row = {column: _plain(value) for column, value in zip(table, values, strict=True)}
        measured_us = 1e6 * float(row["seconds"])
        rows.append(
            {
                axis: row[axis],
                "curve": curve_of(row),
                "measured_us": rounded(measured_us),
                "form_us": rounded(measured_us * ratio),
            }
        )
    rows = _some_curves(rows)
    errors = [abs(row["form_us"] / row["measured_us"] - 1) for row in rows]
    alt = (
        f"{len(rows)} measured points; the form lies {100 * float(np.median(errors)):.1f} % off "
        "(median)."
    )
    return Chart(name, title, unit_chart(title, alt, rows, _curves(rows, axis, label)), rows, alt)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _some_curves(rows: list[Row]) -> list[Row]:
    """The rows of at most a few curves: those with most points, evenly picked."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["curve"]] = counts.get(row["curve"], 0) + 1
    full = [curve for curve, count in counts.items() if 2 * count >= max(counts.values())]
    picks = np.linspace(0, len(full) - 1, min(_CURVES, len(full))).round().astype(int)
    shown = {full[i] for i in picks.tolist()}
    return [row for row in rows if row["curve"] in shown]


def _curves(rows: list[Row], axis: str, label: str) -> Spec:
    times = [row[key] for row in rows for key in ("measured_us", "form_us")]
    x_domain = log_domain(min(row[axis] for row in rows), max(row[axis] for row in rows))
    y_domain = log_domain(min(times), max(times))
    shown = {"field": "curve", "type": "nominal", "sort": None}
    x = log_axis(axis, label, x_domain)
    points = {
        "mark": {"type": "point", "size": 22, "filled": True, "opacity": 0.8, "clip": True},
        "encoding": {
            "x": x,
            "y": log_axis("measured_us", "points: measured, lines: form (us)", y_domain),
            "color": {**shown, "legend": {"title": None, "columns": 3}},
            "tooltip": [{"field": f} for f in ("curve", axis, "measured_us", "form_us")],
        },
    }
    lines = {
        "mark": {"type": "line", "strokeWidth": 1.5, "clip": True},
        "encoding": {
            "x": x,
            "y": log_axis("form_us", "points: measured, lines: form (us)", y_domain),
            "color": {**shown, "legend": {"title": None, "columns": 3}},
        },
    }
    return {"layer": [lines, points]}


_MODES = {0: "read", 1: "write", 2: "copy"}


def _bandwidth(profile: HardwareProfile) -> Chart:
    title, table = "Memory: bandwidth over footprint", profile.tables.get("stream")
    if table is None or not len(table["seconds"]):
        return Chart("bandwidth", title, {}, [], "Not measured.")
    columns = [table[name].tolist() for name in ("bytes", "mode", "seconds")]
    found = [(*row, _MODES.get(row[1], "?")) for row in zip(*columns, strict=True)]
    sweep = profile.tables.get("l2_sweep")
    if sweep is not None:
        columns = [sweep[name].tolist() for name in ("bytes", "cold", "seconds")]
        found += [
            (size, 0, seconds, "read, cold L2" if cold else "read, warm L2")
            for size, cold, seconds in zip(*columns, strict=True)
        ]
    rows = [
        {
            "footprint_mb": rounded(size / 1e6),
            "gb_per_s": rounded(size * (2 if mode == 2 else 1) / seconds / 1e9),
            "curve": curve,
        }
        for size, mode, seconds, curve in found
    ]
    memory = profile.parameters.get("memory", {})
    limits = {
        name: 1e-9 * memory[key]
        for name, key in (("L2", "l2_bytes_per_s"), ("memory", "stream_bytes_per_s"))
        if key in memory
    }
    return _levels(
        "bandwidth", title, rows, ("footprint_mb", "footprint (MB)"), ("gb_per_s", "GB/s"), limits
    )


def _latency(profile: HardwareProfile) -> Chart:
    title, table = "Memory: latency of one load over footprint", profile.tables.get("chase")
    if table is None or not len(table["seconds"]):
        return Chart("latency", title, {}, [], "Not measured.")
    columns = [table[name].tolist() for name in ("footprint_bytes", "stride_bytes", "seconds")]
    rows = [
        {
            "footprint_mb": rounded(footprint / 1e6),
            "ns": rounded(1e9 * seconds),
            "curve": "a line a page" if stride >= PAGE_BYTES else f"stride {stride} B",
        }
        for footprint, stride, seconds in zip(*columns, strict=True)
    ]
    return _levels(
        "latency", title, rows, ("footprint_mb", "footprint (MB)"), ("ns", "ns a load"), {}
    )


def _levels(
    name: str,
    title: str,
    rows: list[Row],
    x: tuple[str, str],
    y: tuple[str, str],
    limits: dict[str, float],
) -> Chart:
    """Points and a line by curve, and fitted levels as rules."""
    values = [row[y[0]] for row in rows] + list(limits.values())
    x_values = [row[x[0]] for row in rows]
    y_domain = log_domain(min(values), max(values))
    encoding = {
        "x": log_axis(x[0], x[1], log_domain(min(x_values), max(x_values))),
        "y": log_axis(y[0], y[1], y_domain),
        "color": {"field": "curve", "type": "nominal", "legend": {"title": None}},
    }
    curve = {
        "mark": {"type": "line", "point": True, "strokeWidth": 1.5, "clip": True},
        "encoding": {**encoding, "tooltip": [{"field": f} for f in (x[0], y[0], "curve")]},
    }
    rules = [
        {
            "mark": {
                "type": "rule",
                "aria": False,
                "strokeDash": [4, 4],
                "color": colour("ink"),
                "opacity": 0.6,
            },
            "encoding": {"y": {"datum": rounded(level)}},
        }
        for level in limits.values()
    ]
    fitted = "".join(
        f" Fitted {what}: {rounded(level, 4):g} {y[1]}." for what, level in limits.items()
    )
    alt = f"{len(rows)} points from {min(x_values):g} to {max(x_values):g} MB.{fitted}"
    return Chart(name, title, unit_chart(title, alt, rows, {"layer": [curve, *rules]}), rows, alt)


def ratios(profile: HardwareProfile) -> Chart:
    """Return how far the forms alone lie off the measured rows, as a histogram by family."""
    title = "Forms against rows"
    rows: list[Row] = []
    alone = replace(profile, tables={})
    edges = np.linspace(-_WIDEST_PCT, _WIDEST_PCT, _BINS + 1)
    for family in FAMILIES:
        if family.groups or family.name not in _SHOWN:
            continue
        names = [name for name in family.tables if name in profile.tables]
        found = [100 * (signed_ratios(alone, n, profile.tables[n]) - 1) for n in names]
        errors = np.concatenate(found) if found else np.zeros(0)
        if not len(errors):
            continue
        counts, _ = np.histogram(np.clip(errors, -_WIDEST_PCT, _WIDEST_PCT), edges)
        rows += [
            {
                "family": family.name,
                "error_pct": rounded(float(low + high) / 2, 4),
                "share_pct": rounded(100 * count / len(errors), 4),
            }
            for low, high, count in zip(edges, edges[1:], counts.tolist(), strict=False)
        ]
    if not rows:
        return Chart("ratios", title, {}, [], "No family was measured.")
    body = {
        "mark": {"type": "line", "interpolate": "step", "strokeWidth": 1.8},
        "encoding": {
            "x": {
                "field": "error_pct",
                "type": "quantitative",
                "axis": {"title": "form against measured seconds (%)"},
            },
            "y": {
                "field": "share_pct",
                "type": "quantitative",
                "axis": {"title": "share of the family's rows (%)"},
            },
            "color": {"field": "family", "type": "nominal", "legend": {"title": None}},
            "tooltip": [{"field": f} for f in ("family", "error_pct", "share_pct")],
        },
    }
    alt = f"Beyond ±{_WIDEST_PCT:.0f} % rows stand in the outermost bins."
    return Chart("ratios", title, unit_chart(title, alt, rows, body), rows, alt)


_SHOWN = ("gemm", "gemm fp8", "prefill", "prefill over a prefix", "decode", "decode fp8",
          "decode int8", "decode int4")  # fmt: skip


def signed_ratios(profile: HardwareProfile, name: str, rows: Table) -> Any:
    """Return predicted over measured seconds of each row of a table."""
    return price_rows(profile, name, rows, signed=True) + 1
