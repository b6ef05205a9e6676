"""The charts of a profile as one static HTML page."""

import html
from collections.abc import Sequence

from calibrate.accuracy.html import svg_of
from calibrate.measuring.session import DRY_RUN
from calibrate.measuring.summary import PRETENDED
from hwmodels.profile import HardwareProfile
from twin.report.charts.chart import Chart
from twin.report.page import STYLE

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def charts_page(profile: HardwareProfile, charts: Sequence[Chart]) -> str:
    """Return the page; it needs no network and no script."""
    title = f"{profile.name}: measured against fitted"
    told = profile.provenance
    lines = [f"{told.source}, {told.date}. Fitted on: {told.fitted_on or 'nothing'}.", *told.notes]
    if profile.engine == DRY_RUN:
        lines.insert(0, PRETENDED + ".")
    errors = "".join(
        f"<tr><th scope='row'>{_text(name)}</th><td>{error.rows}</td>"
        f"<td>{error.median_pct:.1f}</td><td>{error.p90_pct:.1f}</td></tr>"
        for name, error in profile.held_out.items()
    )
    table = (
        "<section><h2>Held-out error</h2><table><thead><tr><th scope='col'>kernels</th>"
        "<th scope='col'>rows</th><th scope='col'>median %</th><th scope='col'>P90 %</th></tr>"
        f"</thead><tbody>{errors}</tbody></table></section>"
    )
    body = [
        f"<header><h1>{_text(title)}</h1>{''.join(f'<p>{_text(line)}</p>' for line in lines)}"
        "</header>",
        table if errors else "",
        *map(_figure, charts),
        "<footer>Made with twin-calibrate plot.</footer>",
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title>",
            f"<style>{STYLE}</style></head><body><main>",
            *body,
            "</main></body></html>\n",
        ]
    )


def _figure(chart: Chart) -> str:
    heading, alt = f"<h2>{_text(chart.title)}</h2>", _text(chart.alt)
    if not chart.spec:
        return f"<figure>{heading}<p>{alt}</p></figure>"
    return (
        f'<figure role="group"><div class="chart">{svg_of(chart)}</div>'
        f"<figcaption>{alt}</figcaption></figure>"
    )


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)
