"""A search's page, terminal summary and data."""

import json
from html.parser import HTMLParser

import pytest
import vl_convert
from rich.console import Console

from tests.unit.search.judging.fake_runs import GOODPUT, ITL, SEQS, TTFT
from tests.unit.search.judging.made_up import made_up_runs, report
from twin.report.charts.style import themed
from twin.search.judging.page import nested_yaml, search_charts, search_page
from twin.search.judging.report import search_summary
from twin.search.judging.table import margin, side_by_side
from twin.search.judging.terminal import terminal_summary

HOSTILE = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def two():
    return report(ITL, TTFT)


@pytest.fixture(scope="module")
def kept():
    runs = made_up_runs()
    runs.objectives = lambda candidate, part: {GOODPUT: 1000.0}
    return report(GOODPUT, trials=25, runs=runs)


class Tags(HTMLParser):
    """Counts what a page opens and closes."""

    def __init__(self):
        super().__init__()
        self.open, self.headings, self.scripts = [], [], 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        if tag not in ("meta", "br", "hr", "img", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def text_of(found, width=140):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(terminal_summary(found))
    return console.export_text()


def test_the_page_is_whole(two):
    page = search_page(two)
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert two.judgement.sentence.replace("'", "&#x27;") in page
    for heading in ("Recommended policy", "Hardware", "The ten best", "What binds"):
        assert heading in tags.headings
    for chart in search_charts(two):
        assert chart.spec
        assert f'id="chart-{chart.name}"' in page


def test_charts_compile_in_both_themes(two):
    for chart in search_charts(two):
        for theme in ("light", "dark"):
            svg = vl_convert.vegalite_to_svg(themed(chart.spec, theme))
            assert svg.count("<path") > 5


def test_trials_chart_shows_who_is_who(two):
    chart = search_charts(two)[1]
    kinds = {row["kind"] for row in chart.rows}
    assert {"default", "Pareto set", "breaks a constraint"} <= kinds
    front = {row["trial"] for row in chart.rows if row["front"]}
    assert front == {one.number for one in two.explanation.front}


def test_the_front_is_one_with_a_single_objective_too():
    one = report(ITL)
    front = {row["trial"] for row in search_charts(one)[1].rows if row["front"]}
    assert front == {tried["trial"] for tried in search_summary(one)["pareto"]} != set()


def test_every_length_is_told_and_that_ends_count(two):
    told = search_summary(two)["stretches"]
    length = {"requests": 600, "traffic_s": 60, "simulated_s": 65}
    assert told == {"search": {"runs": 1, **length}, "confirming": {"runs": 5, **length},
                    "held_out": {"runs": 1, **length}}  # fmt: skip
    page = search_page(two)
    assert "Gains over seeds, runs of 65.0 s on average, start and drain included" in page
    assert "on the traffic of the trials, a run of 65.0 s, start and drain included" in page
    for text in (page, " ".join(text_of(two, 300).split())):
        assert "begins with an empty server" in text
        assert "60.0 s" in text


def test_short_stretches_have_their_own_length():
    runs = made_up_runs(recorded=True)
    told = search_summary(report(ITL, TTFT, runs=runs))["stretches"]
    assert told["confirming"] == {
        "runs": 10, "requests": pytest.approx(60), "traffic_s": pytest.approx(6),
        "simulated_s": pytest.approx(11),
    }  # fmt: skip


def test_whose_error_stands_in_is_said_beside_the_gain(two):
    gains = search_summary(two)["confirmations"][0]["gains"]
    assert [gain["forecast_error_of"] for gain in gains] == ["mean TPOT", "mean TTFT"]
    assert "±6.90 % (mean TPOT)" in search_page(two)


def test_alike_trials_name_no_knob():
    """By a millionth a knob decides everything, and nothing that matters."""
    runs = made_up_runs()
    runs.objectives = lambda candidate, part: {
        GOODPUT: 1000.0 + 0.001 * (candidate.get(SEQS, 256) > 200)
    }
    found = report(GOODPUT, runs=runs)
    summary = search_summary(found)
    assert summary["importance"] == {GOODPUT: []}
    assert summary["alike"] == {GOODPUT: pytest.approx(1e-6)}
    for text in (search_page(found), text_of(found)):
        assert "No knob matters for goodput per GPU-hour" in text
    assert "Too few trials" not in search_charts(found)[2].alt
    assert search_summary(report(ITL))["alike"] == {}


def test_not_validated_is_said_with_the_command(two):
    for text in (search_page(two), text_of(two)):
        assert "not validated on hardware" in text
        assert "twin-calibrate validate out/scenario.yaml" in text


def test_the_terminal_shows_threshold_beside_gain(two):
    text = text_of(two)
    assert "Adopt the found policy" in text
    assert "6.90 %" in text
    assert "policy.max_num_batched_tokens" in text
    assert "Note: Every figure here is made up." in text


def test_the_default_is_kept_plainly(kept):
    found = search_summary(kept)
    assert found["decision"] == "keep the default"
    assert found["candidate"] == {}
    assert "Recommended policy" not in search_page(kept)
    assert "Keep the default" in text_of(kept)


def test_data_are_plain_json(two):
    found = json.loads(json.dumps(search_summary(two), allow_nan=False))
    assert found["counts"] == {"trials": 64, "pruned": 3, "infeasible": 1, "kept_constraints": 32}
    chosen = found["confirmations"][0]
    assert chosen["accepted"]
    assert [gain["objective"] for gain in chosen["gains"]] == [ITL, TTFT]
    assert chosen["gains"][0]["low"] < chosen["gains"][0]["gain"] < chosen["gains"][0]["high"]
    assert found["binds"]["default"]["what"] == "arrivals"
    assert len(found["best"]) == 10
    assert found["hardware"]["command"].startswith("twin-calibrate validate")


def test_ten_best_stand_beside_the_default(two):
    head, rows = side_by_side(two)
    assert head[:2] == ["", "default"]
    assert len(head) <= 12
    assert rows[0][0] == "P99 gap between tokens"
    assert all(len(row) == len(head) for row in rows)


def test_nothing_of_the_inputs_is_markup(two):
    found = report(ITL, trials=21, title=HOSTILE)
    assert HOSTILE not in search_page(found)
    assert "&lt;script&gt;" in search_page(found)


def test_nothing_that_keeps_the_constraints_still_has_a_page():
    runs = made_up_runs()
    runs.violations = lambda candidate, part: {"ttft_s": 0.5}
    found = report(ITL, TTFT, runs=runs)
    assert "No candidate keeps the constraints" in search_page(found)
    assert "No candidate keeps the constraints" in text_of(found)
    assert search_summary(found)["confirmations"] == []


def test_few_trials_have_no_importance():
    found = report(ITL, trials=4)
    assert "variance of ranks" not in search_page(found)


def test_yaml_nests():
    assert nested_yaml(
        {"policy.block_size": 32, "policy.sglang.page_size": 1, "parallelism.tp": 2}
    ) == ("policy:\n  block_size: 32\n  sglang:\n    page_size: 1\nparallelism:\n  tp: 2\n")


@pytest.mark.parametrize(
    ("violation", "text"),
    [(None, "–"), (0.25, "breaks it by 25.0 %"), (-0.25, "25.0 % below"), (0.0, "at the limit")],
)
def test_margins(violation, text):
    assert margin(violation) == text
