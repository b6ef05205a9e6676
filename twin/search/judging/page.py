"""A search as one HTML file that needs nothing else."""

from collections.abc import Mapping

import yaml

from twin.report.charts.chart import Chart
from twin.report.html import escaped, figure, notes_section, page, table
from twin.search.judging.bars import gains_chart, importance_chart, sensitivity_chart
from twin.search.judging.chart import trials_chart
from twin.search.judging.confirm import Confirmation
from twin.search.judging.report import SearchReport
from twin.search.judging.stretch import EDGES, STRETCH_HEADINGS, stretch_rows
from twin.search.judging.table import (
    GAIN_HEADINGS,
    LIMIT_HEADINGS,
    binding_rows,
    change_rows,
    constraint_rows,
    gain_rows,
    importance_rows,
    neighbour_rows,
    side_by_side,
)
from twin.search.judging.told import capitalised, title_of, told, told_alike
from twin.search.knob import Value

RULE = (
    "A gain counts if its 95 % interval leaves out 0, if it is beyond what forecast error alone "
    "may feign, and, for goodput, if it stays one when the SLO's limits move by the forecast error."
)


def search_page(report: SearchReport) -> str:
    """Return a search, judged and explained, as a self-contained page.

    The recommendation comes first, then what it rests on, then how to find out on a GPU, then
    what the trials show.
    """
    charts = search_charts(report)
    gains, trials, shares, near = charts
    body = [
        _header(report),
        _recommended(report),
        figure(gains) if gains.spec else "",
        _confirmations(report),
        _lengths(report),
        _hardware(report),
        figure(trials),
        _ten_best(report),
        figure(shares) if shares.spec else "",
        _importance(report),
        figure(near) if near.spec else "",
        _neighbours(report),
        _binds(report),
        notes_section(list(report.notes)),
        _command(report),
    ]
    return page(f"{report.title} – policy search", body, charts)


def search_charts(report: SearchReport) -> list[Chart]:
    """Return the charts of a search: gains, trials, importance, sensitivity."""
    return [
        gains_chart(report.shown),
        trials_chart(report),
        importance_chart(report),
        sensitivity_chart(report),
    ]


def _header(report: SearchReport) -> str:
    kind = {"adopt": "meets", "keep the default": "open"}.get(report.judgement.decision, "misses")
    counts = report.counts
    wanted = ", then ".join(title_of(name) for name in report.problem.objectives)
    setup = (
        f"{counts['trials']:,} trials for {wanted}; {counts['kept_constraints']:,} keep all "
        f"constraints, {counts['infeasible']:,} cannot be, {counts['pruned']:,} were stopped early"
    )
    return (
        f"<header><h1>{escaped(report.title)}</h1>"
        f'<p class="verdict {kind}">{escaped(report.judgement.sentence)}</p>'
        f'<p class="setup">{escaped(setup)}</p></header>'
    )


def _recommended(report: SearchReport) -> str:
    candidate = report.judgement.candidate
    if not candidate:
        return ""
    rows = change_rows(candidate, report.problem.defaults)
    changes = table(("key", "default", "recommended"), rows, "What changes against the default")
    text = escaped(nested_yaml(candidate))
    return (
        f"<section><h2>Recommended policy</h2>{changes}<details><summary>As YAML</summary>"
        f"<pre><code>{text}</code></pre></details></section>"
    )


def nested_yaml(candidate: Mapping[str, Value]) -> str:
    """Return dotted keys as nested YAML."""
    tree: dict[str, object] = {}
    for key, value in candidate.items():
        node = tree
        *path, last = key.split(".")
        for part in path:
            node = node.setdefault(part, {})  # type: ignore[assignment]
        node[last] = value
    return str(yaml.safe_dump(tree, sort_keys=False))


def _confirmations(report: SearchReport) -> str:
    found = report.judgement.confirmations
    if not found:
        return ""
    parts = "".join(_confirmation(report, one) for one in found)
    return (
        f"<section><h2>Run again on traffic that no trial met</h2><p>{escaped(RULE)}</p>"
        f"{parts}</section>"
    )


def _confirmation(report: SearchReport, one: Confirmation) -> str:
    word = "recommended" if one.accepted else "not recommended"
    name = f"From trial {one.tried.number}, {word}"
    reasons = "".join(f"<li>{escaped(reason)}</li>" for reason in one.reasons)
    parts = [
        f"<p>{escaped(name)}: {escaped(told(one.tried.candidate))}</p>",
        f"<ul>{reasons}</ul>",
        _gains(report, one),
        table(LIMIT_HEADINGS, constraint_rows(one), "Constraints"),
    ]
    return "".join(parts)


def _gains(report: SearchReport, one: Confirmation) -> str:
    if not one.gains:
        return ""
    caption = f"Gains over {one.over}{_told_length(report, 'confirming')}"
    return table(GAIN_HEADINGS, gain_rows(report, one), caption)


def _lengths(report: SearchReport) -> str:
    if not any(report.stretches.values()):
        return ""
    over = report.shown.over if report.shown else "seeds"
    rows = stretch_rows(report.stretches, over)
    lengths = table(STRETCH_HEADINGS, rows, "Runs under the default, means")
    return (
        f"<section><h2>How long the runs are</h2><p>{escaped(EDGES)}</p>{lengths}</section>"
    )  # fmt: skip


def _told_length(report: SearchReport, name: str) -> str:
    """Return `, runs of 18 s on average, start and drain included`; empty: not known."""
    one = report.stretches.get(name)
    return "" if one is None else f", {one.told}, start and drain included"


def _hardware(report: SearchReport) -> str:
    hardware = report.hardware
    if report.judgement.decision != "adopt":
        return ""
    ask = ""
    if hardware.command is not None:
        ask = (
            "<p>Find out on the GPU:</p>"
            f"<pre><code>{escaped(hardware.command)}</code></pre>"
        )  # fmt: skip
    return f"<section><h2>Hardware</h2><p>{escaped(hardware.sentence)}</p>{ask}</section>"


def _ten_best(report: SearchReport) -> str:
    head, rows = side_by_side(report)
    if len(head) < 3:
        return ""
    length = _told_length(report, "search")
    caption = f"The best trials beside the default, on the traffic of the trials{length}"
    return f"<section><h2>The ten best</h2>{table(head, rows, caption)}</section>"


def _importance(report: SearchReport) -> str:
    alike = "".join(
        f"<p>{escaped(told_alike(o, report.explanation.alike[o.name]))}</p>"
        for o in report.objectives
        if o.name in report.explanation.alike
    )
    rows = importance_rows(report)
    if not rows:
        return f"<section><h2>What matters</h2>{alike}</section>" if alike else ""
    shown = [name for name, shares in report.explanation.importance.items() if shares]
    names = [capitalised(title_of(name)) for name in shown]
    head = ["knob", *(f"share: {name}" for name in names), f"median {names[0]} by level"]
    caption = "Shares of the variance of ranks, and medians over trials"
    return f"{alike}<details><summary>All knobs</summary>{table(head, rows, caption)}</details>"


def _neighbours(report: SearchReport) -> str:
    rows = neighbour_rows(report, report.problem.objectives)
    if not rows:
        return ""
    names = [capitalised(title_of(name)) for name in report.problem.objectives]
    head = ["knob", "value", *names, "constraints"]
    caption = "One knob turned, all objectives"
    return f"<details><summary>All objectives</summary>{table(head, rows, caption)}</details>"


def _binds(report: SearchReport) -> str:
    default, found = report.explanation.default_binding, report.explanation.binding
    rows = binding_rows(default, found)
    if not rows:
        return ""
    sentences = "".join(
        f"<p>{escaped(f'{name}: {bound.sentence}')}</p>"
        for name, bound in (("Default", default), ("Recommended", found))
        if bound is not None
    )
    head = ("", "default", "recommended") if found else ("", "default")
    shown = rows if found else [row[:2] for row in rows]
    numbers = table(
        head, shown, f"Runs over all held-out traffic{_told_length(report, 'held_out')}"
    )
    return f"<section><h2>What binds</h2>{sentences}{numbers}</section>"


def _command(report: SearchReport) -> str:
    if report.command is None:
        return ""
    return (
        f"<section><h2>Search again</h2><pre><code>{escaped(report.command)}</code></pre></section>"
    )
