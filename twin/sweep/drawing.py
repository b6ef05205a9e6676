"""A sweep as a chart and as a page."""

from collections.abc import Mapping

from twin.report.charts.chart import Chart
from twin.report.charts.load import LoadMarks, LoadRow, load_chart
from twin.report.charts.load_panels import LatencyMarks
from twin.report.html import escaped, figure, notes_section, page, table
from twin.report.numbers import percent
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
            point.slo_tpot_s,
        )
        for point in sweep.points
    ]


def load_marks(sweep: LoadSweep) -> LoadMarks:
    """Return limits, knee and error bands of a sweep."""
    slo, error, bend = sweep.slo, sweep.error, knee(sweep)
    ttft = LatencyMarks(99.0 if slo.ttft_s is None else slo.percentile, slo.ttft_s, error.ttft_p90)
    errors = f"P90 held-out error of mean TTFT ±{percent(error.ttft_p90)}"
    tpot = None
    if slo.tpot_s is not None:
        tpot = LatencyMarks(slo.percentile, slo.tpot_s, error.tpot_p90)
        errors += f" and of mean TPOT ±{percent(error.tpot_p90)}"
    return LoadMarks(
        unit=sweep.unit,
        ttft=ttft,
        tpot=tpot,
        knee=None if bend.high is None else bend.low,
        basis=f"{errors}, n = {error.rows} ({error.basis})",
    )


def sweep_chart(sweeps: Mapping[str, LoadSweep]) -> Chart:
    """Return the load chart of sweeps by run name; limits, knee and bands are those of the last."""
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
