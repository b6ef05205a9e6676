"""The report as one HTML file that needs nothing else: no network, no server, no other file."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from twin.engine.result import SimulationResult
from twin.report.charts.arrivals import ttft_over_time
from twin.report.charts.chart import Chart
from twin.report.charts.latency import latency_cdf
from twin.report.charts.style import palette_params, theme_config, themed
from twin.report.charts.timelines import kv_over_time, queue_over_time, steps_over_time
from twin.report.latencies import PERCENTILES, measured, request_latencies
from twin.report.numbers import seconds, significant
from twin.report.page import SCRIPT, STYLE
from twin.report.slo import read_slo
from twin.report.terminal import (
    GROWING,
    LATENCIES,
    figure_rows,
    name_of,
    setup_line,
    source_sentence,
)
from twin.report.verdict import bound_sentence, pretended_line, verdict

MAX_TABLE_ROWS = 40
"""Most rows of the table under a chart; the Parquet files hold every row."""

NOT_SCENARIO = ("command", "warmup_requests", "profile_sha256")
"""Inputs a scenario file does not hold: the command line, and what its workload implies."""

# Nothing may be fetched when the page is viewed. Vega compiles its expressions with `Function`.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'unsafe-inline'; img-src data: blob:"
)


def html_report(result: SimulationResult, summary: Mapping[str, Any]) -> str:
    """Return the report of one run as a self-contained page.

    Args:
        result: what the run gave; its `inputs` and `notes` are shown.
        summary: its figures, from `summarise`.

    Every string from the inputs is escaped. The page follows the reader's light or dark
    preference, and each chart has a text, a caption and a table of its numbers.
    """
    charts = report_charts(result)
    title = name_of(result.inputs.get("name")) or "servetwin"
    body = [
        _header(summary, result, title),
        _figures(summary, result.notes),
        *map(figure, charts),
        notes_section([*([GROWING] if summary["queue_grows"] else []), *result.notes]),
        _scenario(result.inputs),
    ]
    return page(f"{title} – serving forecast", body, charts)


def page(title: str, body: Sequence[str], charts: Sequence[Chart]) -> str:
    """Return a self-contained page.

    Args:
        title: of the window.
        body: HTML of its parts, escaped already; empty ones are left out.
        charts: those that `body` has a place for (`figure`).
    """
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escaped(title)}</title>",
            f"<style>{STYLE}</style></head><body><main>",
            *filter(None, body),
            "<footer>A forecast by simulation, made with servetwin.</footer>",
            "</main>",
            *_scripts([chart for chart in charts if chart.spec]),
            "</body></html>\n",
        ]
    )


def report_charts(result: SimulationResult) -> list[Chart]:
    """Return the charts of a report, in the order they are shown."""
    slo = read_slo(result.inputs.get("slo"))
    run = name_of(result.inputs.get("name")) or "run"
    latencies, counted = request_latencies(result.requests), measured(result)
    return [
        latency_cdf("ttft", "TTFT", {run: latencies.ttft_s[counted]}, slo_s=slo.ttft_s),
        latency_cdf("tpot", "TPOT", {run: latencies.tpot_s[counted]}, slo_s=slo.tpot_s),
        latency_cdf("itl", "ITL", {run: result.itl_s}, slo_s=slo.tpot_s, slo_name="TPOT SLO"),
        ttft_over_time(result, slo_s=slo.ttft_s),
        kv_over_time(result),
        queue_over_time(result),
        steps_over_time(result),
    ]


def _header(summary: Mapping[str, Any], result: SimulationResult, title: str) -> str:
    kind = {True: "meets", False: "misses"}.get(summary["slo_met"], "open")
    dry = pretended_line(result.notes)
    warning = f'<p class="verdict open">{_prose(dry)}</p>' if dry else ""
    return (
        f"<header><h1>{escaped(title)}</h1>{warning}"
        f'<p class="verdict {kind}">{_prose(verdict(summary))}</p>'
        f'<p class="setup">{escaped(setup_line(result.inputs))}</p></header>'
    )


def _figures(summary: Mapping[str, Any], notes: Sequence[str]) -> str:
    columns = ["mean", *(f"p{q}" for q in PERCENTILES)]
    head = ["Latency", *(c if c == "mean" else c.upper() for c in columns)]
    rows = [
        [title, *(seconds(summary[key][column]) for column in columns)]
        for key, title in LATENCIES.items()
    ]
    facts = "".join(
        f"<dt>{escaped(what)}</dt><dd>{_prose(figures)}</dd>"
        for what, figures in figure_rows(summary)
    )
    sentences = " ".join(filter(None, (bound_sentence(summary), source_sentence(summary, notes))))
    return (
        f"<section><h2>Figures</h2>{table(head, rows, 'Latencies of the run')}"
        f"<dl>{facts}</dl><p>{_prose(sentences)}</p></section>"
    )


def figure(chart: Chart) -> str:
    """Return the place of a chart, its sentence and the table of its numbers."""
    if not chart.spec:
        return f"<figure><h2>{escaped(chart.title)}</h2><p>{escaped(chart.alt)}</p></figure>"
    return (
        f'<figure aria-labelledby="alt-{chart.name}">'
        f'<div class="chart" id="chart-{chart.name}"></div>'
        f'<figcaption><span id="alt-{chart.name}">{escaped(chart.alt)}</span> '
        f"{escaped(chart.caption)}</figcaption>{_numbers(chart)}</figure>"
    )


def _numbers(chart: Chart) -> str:
    """The chart's rows as a table, evenly thinned where there are many."""
    total = len(chart.rows)
    every = -(-total // MAX_TABLE_ROWS)
    shown = chart.rows[::every]
    head = list(chart.rows[0])
    rows = [
        [significant(cell, 4) if isinstance(cell, float) else str(cell) for cell in row.values()]
        for row in shown
    ]
    note = f"every {every}th of {total:,} rows" if every > 1 else f"all {total:,} rows"
    numbers = table(head, rows, f"{chart.title}, {note}")
    return f"<details><summary>Numbers ({note})</summary>{numbers}</details>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return a table; every cell is escaped."""
    heading = "".join(f'<th scope="col">{escaped(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{escaped(row[0])}</th>'
        + "".join(f"<td>{escaped(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption)}"><table>'
        f"<caption>{escaped(caption)}</caption>"
        f"<thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def notes_section(notes: Sequence[str]) -> str:
    """Return the notes as a list; nothing for none."""
    if not notes:
        return ""
    items = "".join(f"<li>{escaped(note)}</li>" for note in notes)
    return f"<section><h2>What to keep in mind</h2><ul>{items}</ul></section>"


def _scenario(inputs: Mapping[str, Any]) -> str:
    command = inputs.get("command")
    again = (
        f"<p>Run it again:</p><pre><code>{escaped(str(command))}</code></pre>" if command else ""
    )
    text = escaped(scenario_yaml(inputs))
    return (
        f"<section><h2>Scenario</h2>{again}<details><summary>Everything that went in, as YAML"
        f"</summary><pre><code>{text}</code></pre></details></section>"
    )


def scenario_yaml(inputs: Mapping[str, Any]) -> str:
    """Return the inputs as a YAML scenario, without what is no key of a scenario."""
    plain = {key: value for key, value in inputs.items() if key not in NOT_SCENARIO}
    # Through JSON: tuples and NumPy scalars become plain lists and numbers.
    data = json.loads(json.dumps(plain, default=_plain))
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _scripts(charts: Sequence[Chart]) -> list[str]:
    if not charts:
        return []
    themes = {
        name: {"config": theme_config(name), "params": palette_params(name)}
        for name in ("light", "dark")
    }
    payload = {
        "themes": themes,
        "charts": [{"id": f"chart-{c.name}", "spec": _bare(c)} for c in charts],
    }
    return [
        f'<script type="application/json" id="payload">{_script_json(payload)}</script>',
        f"<script>{_bundle()}</script>",
        f"<script>{SCRIPT}</script>",
    ]


def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script, as vl-convert carries them (BSD-3-Clause)."""
    import vl_convert

    # The type stub calls the snippet required; the function has a default, which is wanted.
    return str(vl_convert.javascript_bundle())  # type: ignore[call-arg]


def _bare(chart: Chart) -> dict[str, Any]:
    spec = themed(chart.spec)
    del spec["config"], spec["params"]
    return spec


def _script_json(value: Any) -> str:
    """JSON that cannot end or open a script element, whatever strings it holds."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def escaped(value: str) -> str:
    """Return text with everything escaped that HTML reads as its own."""
    return html.escape(value, quote=True)


def _prose(value: str) -> str:
    """Escaped text whose numbers keep their units on the same line."""
    return re.sub(r"(\d) (?=(?:%|us|ms|s|req/s|tok/s)(?!\w))", "\\1\u00a0", escaped(value))
