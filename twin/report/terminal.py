"""The report in a terminal: verdict, latencies, throughput, KV cache, what binds, caveats."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from twin.report.clients import client_rows
from twin.report.latencies import PERCENTILES
from twin.report.numbers import MISSING, count, percent, seconds, significant
from twin.report.verdict import bound_sentence, pretended_line, verdict

LATENCIES = {
    "ttft_s": "TTFT",
    "tpot_s": "TPOT",
    "itl_s": "ITL",
    "e2e_s": "End to end",
    "queue_s": "Queue",
}
"""Latency keys of a summary and how reports call them, in the order they are shown."""

GROWING = (
    "The queue grows to the end of the run: arrivals outpace the service, so latencies depend on "
    "how long the run is."
)

_SOURCE_WORDS = {
    "table": "measured points",
    "interpolated": "between measured points",
    "physics": "physics only",
    "extrapolated": "beyond the measured range",
}


def print_report(
    console: Console,
    summary: Mapping[str, Any],
    inputs: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Print the report of one run; see `terminal_report`."""
    console.print(terminal_report(summary, inputs or {}, notes))


def terminal_report(
    summary: Mapping[str, Any], inputs: Mapping[str, Any], notes: Sequence[str] = ()
) -> RenderableType:
    """Return the report of one run: `summary` of `summarise`, `inputs` and `notes` of the result.

    Strings from the inputs are shown as they are, never read as markup.
    """
    # The word says what the colour says: colour is never the only cue.
    style = {True: "bold blue", False: "bold dark_orange"}.get(summary["slo_met"], "bold")
    dry = pretended_line(notes)
    parts: list[RenderableType] = [Text(dry, style="bold")] if dry else []
    parts.append(Text(verdict(summary), style=style))
    title = setup_line(inputs)
    if title:
        parts.append(Text(title, style="dim"))
    parts += [Text(""), _latency_table(summary), Text(""), _figures(summary)]
    parts += [Text(""), Text(bound_sentence(summary))]
    sources = source_sentence(summary, notes)
    if sources:
        parts.append(Text(sources))
    if summary["queue_grows"]:
        parts.append(Text(f"Note: {GROWING}"))
    parts += [Text(f"Note: {note}") for note in notes]
    return Group(*parts)


def setup_line(inputs: Mapping[str, Any]) -> str:
    """Return `name · llm · tp 2 × h100_sxm · vllm 0.33.0` from what the inputs hold."""
    cluster = inputs.get("cluster")
    pools = cluster.get("pools") if isinstance(cluster, Mapping) else None
    gpus = [_gpus(inputs)]
    if pools:
        gpus = [f"{count(pool['replicas'])} × {_gpus({**inputs, **pool})}" for pool in pools]
        cluster = None
    parts = [
        name_of(inputs.get("name")),
        name_of(inputs.get("llm")),
        " + ".join(gpus),
        name_of(inputs.get("engine")),
        _replicas(cluster),
    ]
    return " · ".join(part for part in parts if part)


def _gpus(inputs: Mapping[str, Any]) -> str:
    """Return the GPU and over how many of them a replica is spread."""
    parallelism = inputs.get("parallelism")
    degrees = ""
    if isinstance(parallelism, Mapping):
        degrees = " ".join(
            f"{name}{value}" for name, value in parallelism.items() if value not in (1, None)
        )
    return f"{name_of(inputs.get('gpu'))} {degrees}".strip()


def _replicas(cluster: Any) -> str:
    number = cluster.get("replicas") if isinstance(cluster, Mapping) else None
    return f"{count(number)} replicas" if number not in (None, 1) else ""


def name_of(value: Any) -> str:
    """Return how to call an input: a string itself, or a mapping's name and version."""
    if isinstance(value, Mapping):
        words = (value.get("name"), value.get("version"))
        return " ".join(str(word) for word in words if word is not None)
    return "" if value is None else str(value)


def source_sentence(summary: Mapping[str, Any], notes: Sequence[str] = ()) -> str:
    """Return how the step durations were obtained, largest share first; empty if unknown.

    Points of a dry run are called pretended: `notes` tell.
    """
    shares = sorted(summary["time_by_source"].items(), key=lambda item: -item[1])
    known = [f"{_SOURCE_WORDS.get(k, k)} {percent(v)}" for k, v in shares if v > 0]
    text = f"GPU time comes from: {', '.join(known)}." if known else ""
    return text.replace("measured", "pretended") if pretended_line(notes) else text


def _latency_table(summary: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("Latency", no_wrap=True)
    columns = ["mean", *(f"p{q}" for q in PERCENTILES)]
    for column in columns:
        table.add_column(column if column == "mean" else column.upper(), justify="right")
    for key, title in LATENCIES.items():
        table.add_row(title, *(seconds(summary[key][column]) for column in columns))
    return table


def figure_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (what, figures) lines on throughput, KV cache and queue, shared by all reports."""
    usage, running, waiting = (summary[k] for k in ("kv_cache_usage", "running", "waiting"))
    requests = f"{count(summary['finished'])} of {count(summary['requests'])} finished"
    if summary["warmup_requests"]:
        requests += f" ({count(summary['warmup_requests'])} of them warm-up)"
    for key in ("rejected", "failed", "unfinished"):
        if summary.get(key):
            requests += f", {count(summary[key])} {key}"
    if summary.get("clients"):
        requests += f", {count(summary['clients']['timed_out'])} timed out"
    if summary.get("requeues"):
        requests += f"; sent again {count(summary['requeues'])} times"
    rows = [
        ("Attempts" if summary.get("clients") else "Requests", requests),
        (
            "Throughput",
            f"{_rate(summary['requests_per_s'], 'req/s')}, "
            f"{_rate(summary['input_tokens_per_s'], 'tok/s')} in, "
            f"{_rate(summary['output_tokens_per_s'], 'tok/s')} out",
        ),
    ]
    if summary["slo"]:
        good = _rate(summary["goodput_requests_per_s"], "req/s")
        rows.append(("Goodput", f"{good} within the SLO ({percent(summary['slo_attainment'])})"))
    hits = percent(summary["prefix_cache_hit_rate"])
    rows += [
        (
            "KV cache",
            f"mean {percent(usage['mean'])}, peak {percent(usage['max'])} of "
            f"{_blocks(summary)}; prefix hit rate {hits}",
        ),
        ("Preemptions", count(summary["preemptions"])),
        (
            "Batch",
            f"running mean {significant(running['mean'])}, max {count(running['max'])}; "
            f"waiting mean {significant(waiting['mean'])}, max {count(waiting['max'])}",
        ),
        (
            "Steps",
            f"{count(summary['steps'])} over {seconds(summary['simulated_s'])}, "
            f"P50 {seconds(summary['step_s']['p50'])}; GPU busy "
            f"{percent(summary['gpu_busy_share'])}",
        ),
    ]
    return rows + _cluster_rows(summary) + client_rows(summary)


def _blocks(summary: Mapping[str, Any]) -> str:
    """Return how many KV blocks a replica has, or that replicas have different numbers."""
    pools = (summary.get("cluster") or {}).get("pools", ())
    if len({pool["kv_blocks"] for pool in pools}) > 1:
        return "a replica's blocks"
    return f"{count(summary['kv_blocks'])} blocks a replica"


def _cluster_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return lines on pools and on what happened to replicas, where there is anything to tell."""
    cluster = summary.get("cluster")
    if not cluster:
        return []
    happened = f"crashed {count(cluster['crashes'])}, started {count(cluster['starts'])} times; "
    rows = [("Replicas", f"{happened}{significant(summary['gpu_s'])} GPU-seconds")]
    if len(cluster["pools"]) > 1:
        rows += [
            (
                f"Pool {pool['name']}",
                f"{count(pool['replicas'])} × {pool['gpu']}, {count(pool['requests'])} requests, "
                f"{count(pool['kv_blocks'])} blocks a replica, "
                f"{significant(pool['gpu_s'])} GPU-seconds",
            )
            for pool in cluster["pools"]
        ]
    return rows


def _figures(summary: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for what, figures in figure_rows(summary):
        table.add_row(what, Text(figures))
    return table


def _rate(value: float | None, unit: str) -> str:
    return MISSING if value is None else f"{significant(value)} {unit}"
