"""The accuracy report as one static HTML page: tables and residual plots."""

import html
from collections.abc import Sequence
from typing import Any

from calibrate.accuracy.charts import METRICS, residuals
from calibrate.accuracy.groups import Errors, Group, groups
from calibrate.accuracy.report import Judgement, class_groups, unsaturated_groups
from hwmodels.serving_fits import SERVING_FITS
from twin.report.charts.chart import Chart
from twin.report.charts.style import themed
from twin.report.page import STYLE

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_HEAD = (
    "rows", "n", "predicted", "TPOT median", "TPOT mean", "TPOT P90", "TPOT bias", "TTFT median",
    "TTFT mean", "TTFT P90", "TTFT bias",
)  # fmt: skip


def accuracy_page(judgement: Judgement) -> str:
    """Return the page: fitted and held-out figures apart, plots of the held-out ones."""
    held_out, fitted = judgement.held_out, judgement.fitted
    charts = accuracy_charts(judgement)
    body = [
        "<header><h1>Accuracy on measured serving rows</h1>"
        f"<p>{_text(_introduction(judgement))}</p></header>",
        _section("Classes of rows, each group held out", class_groups(held_out)),
        _section("Classes of rows, fitted", class_groups(fitted)),
        *map(_figure, charts),
        _section("Groups, unsaturated rows, held out", unsaturated_groups(held_out)),
        _section("Groups, unsaturated rows, fitted", unsaturated_groups(fitted)),
        _section("Groups, all rows, held out", groups(held_out)),
        _values(),
        _not_predicted(judgement),
        "<footer>Made with twin-calibrate accuracy.</footer>",
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<title>Accuracy on measured serving rows</title>",
            f"<style>{STYLE}</style></head><body><main>",
            *body,
            "</main></body></html>\n",
        ]
    )


def accuracy_charts(judgement: Judgement) -> list[Chart]:
    """Return the residual plots: held out, dense and mixture-of-experts networks apart."""
    dense = [p for p in judgement.held_out if not p.moe]
    experts = [p for p in judgement.held_out if p.moe]
    kinds = (("dense", "dense networks", dense), ("moe", "mixtures of experts", experts))
    return [
        residuals(f"{metric[0].lower()}-{kind}", title, rows, metric)
        for kind, title, rows in kinds
        for metric in METRICS
    ]


def svg_of(chart: Chart) -> str:
    """Return a chart as SVG."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(themed(chart.spec)))


def _introduction(judgement: Judgement) -> str:
    rows = len(judgement.fitted)
    unseen = judgement.seen.count(False)
    return (
        f"{rows} rows, {unseen} of them from groups that no fit saw. Held out means: predicted "
        "with costs fitted on the other groups. Errors are absolute per cent, bias is the median "
        f"signed one. Fitted on: {SERVING_FITS['fitted_on'] or 'nothing'}."
    )


def _section(title: str, found: Sequence[Group]) -> str:
    rows = [[g.name, str(g.n), str(g.predicted), *_cells(g.tpot), *_cells(g.ttft)] for g in found]
    return f"<section><h2>{_text(title)}</h2>{_table(_HEAD, rows, title)}</section>"


def _cells(errors: Errors) -> list[str]:
    shown = ["–" if v is None else f"{v:.1f}" for v in (errors.median, errors.mean, errors.p90)]
    return [*shown, "–" if errors.bias is None else f"{errors.bias:+.1f}"]


def _values() -> str:
    rows = [[key, f"{value:.4g}"] for key, value in SERVING_FITS["values"].items()]
    if not rows:
        return ""
    title = "Fitted numbers"
    return f"<section><h2>{title}</h2>{_table(('number', 'value'), rows, title)}</section>"


def _not_predicted(judgement: Judgement) -> str:
    rows = [[p.row.row_id, p.why_not] for p in judgement.fitted if p.why_not]
    if not rows:
        return ""
    title = "Rows without a prediction"
    return f"<section><h2>{title}</h2>{_table(('row', 'why'), rows, title)}</section>"


def _figure(chart: Chart) -> str:
    if not chart.spec:
        return f"<figure><h2>{_text(chart.title)}</h2><p>{_text(chart.alt)}</p></figure>"
    return (
        f'<figure role="group"><div class="chart">{svg_of(chart)}</div>'
        f"<figcaption>{_text(chart.alt)}</figcaption></figure>"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str) -> str:
    heading = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{_text(row[0])}</th>'
        + "".join(f"<td>{_text(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(caption)}"><table>'
        f"<caption>{_text(caption)}</caption><thead><tr>{heading}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _text(value: Any) -> str:
    return html.escape(str(value), quote=True)
