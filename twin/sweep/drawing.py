"""A sweep as a chart and as a page."""

from collections.abc import Mapping

from twin.report.charts.chart import Chart
from twin.report.charts.load import LoadMarks, LoadRow, load_chart
from twin.report.html import escaped, figure, notes_section, page, table
from twin.sweep.first_to_break import first_to_break
from twin.sweep.knee import knee
from twin.sweep.limit import load_limit
from twin.sweep.sweep import LoadSweep
from twin.sweep.terminal import HEADINGS, cells, knee_sentence


def load_rows(sweep: LoadSweep) -> list[LoadRow]:
    """Return what a load chart shows of a sweep: TTFT at the SLO's percentile, else P99."""
    at_slo = sweep.slo.ttft_s is not None
    return [
        LoadRow(
            point.offered,
            point.slo_ttft_s if at_slo else point.ttft_p99_s,
            point.goodput_per_s,
            point.slo.met if sweep.slo.asked else None,
        )
        for point in sweep.points
    ]


def load_marks(sweep: LoadSweep) -> LoadMarks:
    """Return limit, knee and error band of a sweep."""
    at_slo, bend = sweep.slo.ttft_s is not None, knee(sweep)
    error = sweep.error
    return LoadMarks(
        unit=sweep.unit,
        percentile=sweep.slo.percentile if at_slo else 99.0,
        slo_s=sweep.slo.ttft_s,
        knee=None if bend.high is None else bend.low,
        error=error.ttft_p90,
        basis=(
            f"P90 held-out error of mean TTFT ±{100 * error.ttft_p90:.3g} %, n = {error.rows} "
            f"({error.basis})"
        ),
    )


def sweep_chart(sweeps: Mapping[str, LoadSweep]) -> Chart:
    """Return the load chart of sweeps by run name; limit, knee and band are those of the last."""
    last = list(sweeps.values())[-1]
    return load_chart({run: load_rows(one) for run, one in sweeps.items()}, load_marks(last))


def sweep_page(sweep: LoadSweep) -> str:
    """Return a sweep as one HTML file that needs nothing else."""
    charts = [sweep_chart({sweep.name: sweep})]
    sentences = (load_limit(sweep).sentence, first_to_break(sweep).sentence, knee_sentence(sweep))
    words = "".join(f"<p>{escaped(sentence)}</p>" for sentence in sentences)
    rows = table([heading for heading, _ in HEADINGS], cells(sweep), "One run a load")
    body = [
        f"<header><h1>{escaped(sweep.name)}: load sweep</h1>{words}</header>",
        *map(figure, charts),
        f"<section><h2>By load</h2>{rows}</section>",
        notes_section(sweep.notes),
    ]
    return page(f"{sweep.name} – load sweep", body, charts)
