"""A comparison in a terminal."""

from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from twin.compare.comparison import Comparison, FigureChange
from twin.report.numbers import change, count, percent, seconds, significant


def _yes(value: float | None) -> str:
    return {1.0: "yes", 0.0: "no"}.get(value, "–") if value is not None else "–"


Show = Callable[[float | None], str]

SHOWN: tuple[tuple[str, str, Show], ...] = (
    ("ttft_s.p50", "TTFT P50", seconds),
    ("ttft_s.p95", "TTFT P95", seconds),
    ("ttft_s.p99", "TTFT P99", seconds),
    ("tpot_s.p50", "TPOT P50", seconds),
    ("tpot_s.p95", "TPOT P95", seconds),
    ("tpot_s.p99", "TPOT P99", seconds),
    ("itl_s.p50", "ITL P50", seconds),
    ("itl_s.p99", "ITL P99", seconds),
    ("e2e_s.p99", "End to end P99", seconds),
    ("queue_s.p99", "Queue P99", seconds),
    ("requests_per_s", "Throughput (req/s)", significant),
    ("input_tokens_per_s", "Input (tok/s)", significant),
    ("output_tokens_per_s", "Output (tok/s)", significant),
    ("goodput_requests_per_s", "Goodput (req/s)", significant),
    ("slo_met", "SLO met", _yes),
    ("slo_attainment", "SLO attainment", percent),
    ("rejected", "Rejected", count),
    ("unfinished", "Unfinished", count),
    ("failed", "Lost with their replica", count),
    ("requeues", "Sent again", count),
    ("clients.succeeded", "Succeeded at last", count),
    ("clients.timed_out", "Attempts timed out", count),
    ("clients.attempts_per_request", "Attempts a request", significant),
    ("clients.wasted_gpu_share", "GPU time wasted", percent),
    ("preemptions", "Preemptions", count),
    ("prefix_cache_hit_rate", "Prefix hit rate", percent),
    ("kv_blocks", "KV blocks", count),
    ("kv_cache_usage.mean", "KV usage, mean", percent),
    ("kv_cache_usage.max", "KV usage, peak", percent),
    ("waiting.mean", "Waiting, mean", significant),
    ("gpu_busy_share", "GPU busy", percent),
    ("gpu_s", "GPU time paid", seconds),
)
"""(figure, how it is called, how it is written), in the order of the table."""

_STYLES = {"better": "blue", "worse": "dark_orange", "within error": "dim", "same": "dim"}


def comparison_report(
    comparison: Comparison, *, name_a: str = "A", name_b: str = "B"
) -> RenderableType:
    """Return what differs between A and B: inputs, then figures where both sides have them."""
    parts: list[RenderableType] = [_inputs(comparison, name_a, name_b)]
    if comparison.figures:
        parts += [Text(""), _figures(comparison, name_a, name_b)]
    return Group(*parts)


def describe(figure: FigureChange, name_a: str = "A") -> str:
    """Return a change in words: `-18 % vs A, better`."""
    if figure.verdict == "unknown":
        return f"only {name_a} has it" if figure.b is None else f"{name_a} has none"
    if figure.verdict == "same" or figure.key == "slo_met":
        return figure.verdict
    if figure.percent is None:
        sign = "+" if (figure.delta or 0) > 0 else "-"
        size = f"{sign}{significant(abs(figure.delta or 0))}"
    else:
        size = change(figure.percent)
    word = "" if figure.verdict == "neutral" else f", {figure.verdict}"
    return f"{size} vs {name_a}{word}"


def _inputs(comparison: Comparison, name_a: str, name_b: str) -> RenderableType:
    if not comparison.inputs:
        return Text("The inputs are the same.")
    table = _table("Input", name_a, name_b)
    for item in comparison.inputs:
        table.add_row(Text(item.key), Text(_value(item.a)), Text(_value(item.b)))
    return table


def _figures(comparison: Comparison, name_a: str, name_b: str) -> Table:
    table = _table("Figure", name_a, name_b)
    table.add_column("Change", no_wrap=True)
    for key, title, show in SHOWN:
        figure = comparison.figure(key)
        if figure is None or (figure.a is None and figure.b is None):
            continue
        text = Text(describe(figure, name_a), style=_STYLES.get(figure.verdict, ""))
        table.add_row(title, show(figure.a), show(figure.b), text)
    return table


def _table(what: str, name_a: str, name_b: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(what, no_wrap=True)
    # As Text: a name with brackets in it is a name, not markup.
    for name in (name_a, name_b):
        table.add_column(Text(name), justify="right")
    return table


def _value(value: Any) -> str:
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
