"""Reports made of trials and `summary.json`, and of trials alone."""

import json

import altair
import pytest
import vl_convert

from tests.unit.search.judging.fake_runs import GOODPUT, ITL, TTFT, problem
from tests.unit.search.judging.made_up import made_up_runs, report
from twin.errors import InputError
from twin.report.charts.style import themed
from twin.search.judging.page import search_charts
from twin.search.judging.report import search_summary
from twin.search.judging.stored import provisional_report, stored_report
from twin.search.judging.table import gain_rows, importance_rows, neighbour_rows, side_by_side
from twin.search.judging.tradeoff import tradeoff_chart
from twin.search.study.options import FinishedTrial


def trials_of(found):
    """The study that a report was made of, its stopped trials included."""
    states = {True: "infeasible", False: "complete"}
    kept = [
        FinishedTrial(t.number, states[t.evaluation.infeasible is not None], t.evaluation)
        for t in found.trials
    ]
    stopped = [
        FinishedTrial(len(kept) + n, "pruned", found.trials[1].evaluation)
        for n in range(found.pruned)
    ]
    return kept + stopped


def reread(found, tmp_path):
    summary = json.loads(json.dumps(search_summary(found)))
    return stored_report(found.problem, trials_of(found), summary, tmp_path)


@pytest.fixture(scope="module")
def two():
    return report(ITL, TTFT)


def test_a_stored_report_draws_the_same_charts(two, tmp_path):
    again = reread(two, tmp_path)
    for old, new in zip(search_charts(two), search_charts(again), strict=True):
        assert new == old
    assert tradeoff_chart(again) == tradeoff_chart(two)


def test_a_stored_report_has_the_same_tables(two, tmp_path):
    again = reread(two, tmp_path)
    assert side_by_side(again) == side_by_side(two)
    assert importance_rows(again) == importance_rows(two)
    assert neighbour_rows(again, (ITL, TTFT)) == neighbour_rows(two, (ITL, TTFT))
    assert gain_rows(again, again.shown) == gain_rows(two, two.shown)
    assert again.judgement.sentence == two.judgement.sentence
    assert again.counts == two.counts
    assert again.stretches == dict(two.stretches)
    assert again.explanation.binding.sentence == two.explanation.binding.sentence


def test_a_kept_default_and_a_search_without_result_are_read_too(tmp_path):
    runs = made_up_runs()
    runs.objectives = lambda candidate, part: {GOODPUT: 1000.0}
    kept = reread(report(GOODPUT, trials=25, runs=runs), tmp_path)
    assert kept.judgement.decision == "keep the default"
    assert kept.judgement.chosen is None
    runs.violations = lambda candidate, part: {"ttft_s": 0.5}
    none = reread(report(GOODPUT, trials=25, runs=runs), tmp_path)
    assert none.judgement.best is None
    assert search_charts(none)[1].spec


def test_another_versions_summary_is_refused(two, tmp_path):
    summary = {**search_summary(two), "schema_version": 99}
    with pytest.raises(InputError, match="another version"):
        stored_report(two.problem, trials_of(two), summary, tmp_path)


def test_a_running_study_has_charts_but_no_verdict(two):
    now = provisional_report(two.problem, trials_of(two)[:30])
    assert now.judgement.sentence == ""
    assert now.judgement.chosen is None
    assert now.judgement.best.number in {t.number for t in now.trials}
    assert search_charts(now)[1].spec


def test_nothing_has_ended_yet():
    now = provisional_report(problem(GOODPUT), [])
    assert tradeoff_chart(now).spec == {}
    assert search_charts(now)[1].spec == {}


def with_slo(found, ttft_s):
    import dataclasses

    slo = found.problem.file.slo.model_copy(update={"ttft_s": ttft_s, "percentile": 90.0})
    file = found.problem.file.model_copy(update={"slo": slo})
    return dataclasses.replace(found, problem=dataclasses.replace(found.problem, file=file))


def test_the_tradeoff_stands_at_the_slos_own_percentile(two):
    found = with_slo(two, 1.2)
    chart = tradeoff_chart(found)
    assert "P90 time to first token" in json.dumps(chart.spec)
    tried = {t.number: t.evaluation for t in found.trials}
    for row in chart.rows:
        expected = 1.2 * (1 + tried[row["trial"]].violations["ttft_s"])
        at_s = row.get("ttft_s", row.get("ttft_ms", 0) / 1e3)
        assert at_s == pytest.approx(expected, rel=1e-3)
        assert (row["kind"] == "breaks a constraint") <= (at_s > 1.2)
    kinds = {row["kind"] for row in chart.rows}
    assert {"default", "breaks a constraint", "keeps all constraints"} <= kinds
    assert kinds & {"recommended", "best trial"}
    assert "Shaded" in chart.caption


def test_the_tradeoff_draws_in_both_themes(two):
    chart = tradeoff_chart(with_slo(two, 1.2))
    for theme in ("light", "dark"):
        spec = themed(chart.spec, theme)
        altair.Chart.from_dict(spec)
        assert vl_convert.vegalite_to_svg(spec).count("<path") > 20


def test_ttft_alone_has_no_tradeoff():
    assert tradeoff_chart(report(TTFT, trials=5)) is None


def test_no_axis_blows_up_what_is_equally_good():
    runs = made_up_runs()
    runs.objectives = lambda candidate, part: {GOODPUT: 1000.0 + len(candidate) * 1e-3}
    found = report(GOODPUT, trials=25, runs=runs)
    chart = search_charts(found)[1]
    domain = chart.spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert domain[1] - domain[0] == pytest.approx(0.05 * 1000, rel=0.01)
