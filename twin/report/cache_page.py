"""The answer of `twin cache` as a page or as a drawing."""

from pathlib import Path

from twin.caching.comparison import CacheComparison
from twin.report.cache import (
    BELOW,
    RATES,
    below_cells,
    below_headings,
    facts_lines,
    rate_cells,
    rate_headings,
)
from twin.report.cache_summary import summary_line
from twin.report.charts.cache import below_chart, rate_chart
from twin.report.charts.style import themed
from twin.report.html import escaped, figure, notes_section, page, table


def cache_page(found: CacheComparison) -> str:
    """Return the answer as one HTML file that needs nothing else."""
    charts = [rate_chart(found), below_chart(found)]
    name = Path(found.trace).name
    lines = [*facts_lines(found), summary_line(found)]
    sentences = "".join(f"<p>{escaped(line)}</p>" for line in lines if line)
    rates = table(rate_headings(found), rate_cells(found), RATES)
    below = table(below_headings(found), below_cells(found), BELOW)
    body = [
        f"<header><h1>Eviction policies on {escaped(name)}</h1>{sentences}</header>",
        *map(figure, charts),
        f"<section><h2>By capacity</h2>{rates}{below}</section>",
        notes_section(found.notes),
    ]
    return page(f"{name} – eviction policies", body, charts)


def cache_svg(found: CacheComparison) -> str:
    """Return the hit rates over capacity as SVG, in the light theme."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(themed(rate_chart(found).spec)))
