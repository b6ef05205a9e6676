"""What a study says, as charts, tables and sentences."""

from pathlib import Path

import pytest

from app.answers.search.study import findings_of
from tests.unit.search.judging.fake_runs import GOODPUT, ITL, TTFT
from tests.unit.search.judging.made_up import made_up_runs, report

OUT = Path("out")


@pytest.fixture(scope="module")
def adopted():
    return findings_of(report(ITL, TTFT), judged=True, out=OUT)


def test_an_adopted_policy_has_it_all(adopted):
    assert adopted.decision == "adopt"
    assert adopted.sentence.startswith("Adopt the found policy")
    assert set(adopted.charts) == {"tradeoff", "trials", "importance", "gains", "sensitivity"}
    assert {"best", "importance", "changes", "gains", "limits", "neighbours"} <= set(adopted.tables)
    assert adopted.tables["limits"].head[0] == "limit"
    assert len(adopted.binds) == 2


def test_the_command_names_no_folder(adopted):
    assert adopted.command == "twin-calibrate validate scenario.yaml"


def test_a_search_for_ttft_alone_has_no_tradeoff():
    found = findings_of(report(TTFT, trials=25), judged=True, out=OUT)
    assert "tradeoff" not in found.charts
    assert "trials" in found.charts


def test_nothing_is_said_before_it_is_judged():
    found = findings_of(report(ITL), judged=False, out=OUT)
    assert (found.sentence, found.decision) == ("", "")
    assert not {"gains", "sensitivity"} & set(found.charts)


def test_a_kept_default_changes_nothing():
    runs = made_up_runs()
    runs.objectives = lambda candidate, part: {GOODPUT: 1000.0}
    found = findings_of(report(GOODPUT, trials=25, runs=runs), judged=True, out=OUT)
    assert found.decision == "keep the default"
    assert "changes" not in found.tables
