"""Figures and plots of docs/stories/azure_conversation_h100.md.

`python -m tests.audit.story` searches the Azure conversation hour at 1.8 times its rate on one H100
(minutes), writes the plots and puts the figures into the story; `--out DIR` keeps the study there
and goes on with it. Needs the measured data (`SERVETWIN_DATA`).
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import vl_convert

from tests.audit import records
from twin.engine import simulate
from twin.files import write_text
from twin.recording import RecordingSpec
from twin.report.charts.chart import Chart
from twin.report.charts.latency import latency_cdf
from twin.report.charts.style import themed
from twin.report.latencies import request_latencies
from twin.report.metrics import summarise
from twin.report.numbers import percent, seconds, significant
from twin.search.evaluate import Evaluator
from twin.search.judging.conclude import conclude
from twin.search.judging.page import search_charts
from twin.search.judging.report import SearchReport
from twin.search.judging.table import (
    GAIN_HEADINGS,
    LIMIT_HEADINGS,
    change_rows,
    constraint_rows,
    gain_rows,
    neighbour_rows,
)
from twin.search.piece import HELD_OUT
from twin.search.problem import Limits, SearchProblem
from twin.search.setting import make_problem
from twin.search.study.coordinator import run_study
from twin.search.study.options import StudyOptions

COMMAND = "python -m tests.audit.story"
PAGE = records.ROOT / "docs" / "stories" / "azure_conversation_h100.md"
PLOTS = PAGE.parent / "azure_conversation_h100"
OBJECTIVE, TRIALS = "p99_itl_s", 60
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
FIGURES = (
    ("TTFT P50", "ttft_s", "p50"),
    ("TTFT P99", "ttft_s", "p99"),
    ("TPOT P50", "tpot_s", "p50"),
    ("TPOT P99", "tpot_s", "p99"),
    ("ITL P50", "itl_s", "p50"),
    ("ITL P99", "itl_s", "p99"),
    ("End to end P99", "e2e_s", "p99"),
)


def azure_problem() -> SearchProblem:
    """Return the search of the story."""
    trace = records.data_folder() / "traces" / "azure_2023_conv.csv"
    overrides = {
        "name": "azure-conversation-h100",
        "workload.path": str(trace),
        "workload.rate_scale": 1.8,
    }
    return make_problem(
        "chat-h100", overrides, engine="vllm", objectives=(OBJECTIVE,), limits=Limits(gpus=1)
    )


def table(heads: Any, rows: Any) -> str:
    """Return a Markdown table."""
    lines = [list(heads), ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def held_out_runs(report: SearchReport) -> dict[str, Any]:
    """Return the runs of the default and of the found policy over the held-out part."""
    evaluator = Evaluator(report.problem)
    runs = {}
    for name, candidate in (("default", {}), ("found", report.judgement.candidate)):
        scenario = evaluator.scenario(candidate, HELD_OUT)
        file = scenario.file.model_copy(update={"recording": RecordingSpec()})
        runs[name] = simulate(replace(scenario, file=file))
    return runs


def latency_charts(report: SearchReport, runs: Mapping[str, Any]) -> list[Chart]:
    """Return cumulative distributions of TTFT and gaps, default against found."""
    slo = report.problem.file.slo
    ttft = {name: request_latencies(run.requests).ttft_s for name, run in runs.items()}
    itl = {name: run.itl_s for name, run in runs.items()}
    return [
        latency_cdf("ttft", "TTFT", ttft, slo_s=slo.ttft_s),
        latency_cdf("itl", "ITL", itl, slo_s=slo.tpot_s, slo_name="TPOT SLO"),
    ]


def figures(report: SearchReport, runs: Mapping[str, Any]) -> str:
    """Return the story's figures as Markdown."""
    summaries = {name: summarise(run) for name, run in runs.items()}
    rows = [
        [title, *(seconds(summary[key][q]) for summary in summaries.values())]
        for title, key, q in FIGURES
    ]
    rows += [
        ["Output, tok/s", *(significant(s["output_tokens_per_s"]) for s in summaries.values())],
        ["Requests within the SLO", *(percent(s["slo_attainment"]) for s in summaries.values())],
        ["KV usage, peak", *(percent(s["kv_cache_usage"]["max"]) for s in summaries.values())],
    ]
    shown = report.shown
    near = neighbour_rows(report, report.problem.objectives)
    parts = [
        f"> {report.judgement.sentence}",
        table(
            ("key", "default", "found"), change_rows(_candidate(report), report.problem.defaults)
        ),
        "" if shown is None else table(GAIN_HEADINGS, gain_rows(report, shown)),
        "" if shown is None else table(LIMIT_HEADINGS, constraint_rows(shown)),
        "All of the held-out part in one run each:",
        table(("", "default", "found"), rows),
        "One knob turned, from the found policy:",
        table(("knob", "value", "gain", "constraints"), near),
        *(f"{name}: {one.sentence}" for name, one in _bindings(report)),
    ]
    return "\n\n".join(part for part in parts if part)


def _candidate(report: SearchReport) -> Any:
    shown = report.shown
    return report.judgement.candidate or ({} if shown is None else shown.tried.candidate)


def _bindings(report: SearchReport) -> list[tuple[str, Any]]:
    explanation = report.explanation
    both = (("Default", explanation.default_binding), ("Found", explanation.binding))
    return [(name, one) for name, one in both if one is not None]


def write(report: SearchReport) -> None:
    """Write the plots and the figures."""
    runs = held_out_runs(report)
    PLOTS.mkdir(parents=True, exist_ok=True)
    for chart in [*search_charts(report), *latency_charts(report, runs)]:
        if chart.spec:
            svg = vl_convert.vegalite_to_svg(themed(chart.spec))
            write_text(PLOTS / f"{chart.name}.svg", svg)
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    body = f"{before}{BEGIN}\n\n{figures(report, runs)}\n\n{END}{rest.split(END)[1]}"
    write_text(PAGE, body)


def main() -> None:
    """Search, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    parser.add_argument("--out", default=None, help="folder of the study")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(asked.out or folder)
        problem = azure_problem()
        study = run_study(problem, StudyOptions(out=out, trials=TRIALS))
        report = conclude(problem, study, out)
        print(report.judgement.sentence)
        write(report)


if __name__ == "__main__":
    main()
