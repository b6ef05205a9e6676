"""TTFT and goodput by load."""

import json
import re
from dataclasses import replace

import pytest

from twin.report.charts.chart import MAX_MARKS
from twin.report.charts.load import LoadMarks, LoadRow, load_chart
from twin.report.charts.load_panels import LatencyMarks
from twin.report.charts.style import themed

vl_convert = pytest.importorskip("vl_convert")

ROWS = [
    LoadRow(2.0, 0.1, 2.0, True, 0.01),
    LoadRow(10.0, 0.4, 9.0, True, 0.02),
    LoadRow(20.0, 4.0, 1.0, False, 0.04),
]
TTFT = LatencyMarks(percentile=95, slo_s=0.5, error=0.25)
MARKS = LoadMarks(ttft=TTFT, knee=10.0, basis="P90 error ±25 %")
BOTH = replace(MARKS, tpot=LatencyMarks(percentile=95, slo_s=0.03, error=0.6))


def titles(chart):
    """Return the y titles of a chart's panels, from the top."""
    return [p["layer"][0]["encoding"]["y"]["axis"]["title"] for p in chart.spec["vconcat"]]


@pytest.mark.parametrize("marks", [MARKS, BOTH])
def test_it_draws_in_both_themes_and_is_whole(marks):
    chart = load_chart({"A": ROWS, "B": ROWS}, marks)
    for theme in ("light", "dark"):
        assert "<svg" in vl_convert.vegalite_to_svg(themed(chart.spec, theme))
    assert re.fullmatch(r"[A-Z].*\.", chart.alt)
    assert "Band: P90 error ±25 %." in chart.caption
    json.dumps(chart.spec, allow_nan=False)
    assert len(chart.rows) <= MAX_MARKS


def test_ttft_stands_alone_where_tpot_has_no_limit():
    chart = load_chart({"A": ROWS, "B": ROWS}, MARKS)
    assert titles(chart) == ["P95 TTFT (ms)", "Goodput (req/s)"]
    assert chart.alt.startswith("TTFT and goodput by load; ")
    assert not any("tpot" in key for key in chart.rows[0])
    assert (
        "B: P95 TTFT 100 ms at 2.00 and 4.00 s at 20.0 req/s; the SLO is TTFT 500 ms" in chart.alt
    )


def test_a_limit_on_tpot_has_a_panel_with_rule_and_band_of_its_own():
    chart = load_chart({"A": ROWS, "B": ROWS}, BOTH)
    assert titles(chart) == ["P95 TTFT (ms)", "P95 TPOT (ms)", "Goodput (req/s)"]
    *_, rule, label = chart.spec["vconcat"][1]["layer"]
    assert rule["encoding"]["y"]["datum"] == pytest.approx(30)
    assert label["mark"]["text"] == "TPOT SLO 30 ms"
    assert [(r["tpot_low_ms"], r["tpot_high_ms"]) for r in chart.rows[3:5]] == [
        (6.25, 16),
        (12.5, 32),
    ]
    assert chart.alt.startswith("TTFT, TPOT and goodput by load; ")
    assert (
        "B: P95 TTFT 100 ms at 2.00 and 4.00 s at 20.0 req/s, P95 TPOT 10.0 ms and 40.0 ms; the "
        "SLO is TTFT 500 ms and TPOT 30 ms; goodput" in chart.alt
    )


def test_a_limit_on_tpot_alone_leaves_ttft_without_a_rule():
    alone = replace(BOTH, ttft=LatencyMarks(error=0.25))
    top, middle, _ = load_chart({"A": ROWS}, alone).spec["vconcat"]
    assert (len(top["layer"]), len(middle["layer"])) == (3, 5)


def test_answers_of_one_token_have_no_tpot_to_draw():
    rows = [replace(row, tpot_s=None) for row in ROWS]
    assert titles(load_chart({"A": rows}, BOTH)) == ["P95 TTFT (ms)", "Goodput (req/s)"]
    some = load_chart({"A": rows, "B": ROWS}, BOTH)
    assert [row["tpot_ms"] for row in some.rows] == [None, None, None, 10, 20, 40]


def test_the_band_is_the_last_runs():
    rows = load_chart({"A": ROWS, "B": ROWS}, MARKS).rows
    assert [(r["ttft_low_ms"], r["ttft_high_ms"]) for r in rows[:2]] == [(100, 100), (400, 400)]
    assert [(r["ttft_low_ms"], r["ttft_high_ms"]) for r in rows[3:5]] == [(80, 125), (320, 500)]


def test_a_wide_range_of_loads_is_logarithmic():
    def scale(last):
        spec = load_chart({"A": [*ROWS, LoadRow(last, 5.0, 1.0, False)]}, MARKS).spec
        return spec["vconcat"][1]["layer"][0]["encoding"]["x"]["scale"].get("type")

    assert scale(40.0) is None
    assert scale(41.0) == "log"


def test_what_is_not_known_is_not_drawn():
    plain = load_chart({"A": [*ROWS, LoadRow(30.0, None, None)]}, LoadMarks(unit="clients"))
    assert [len(panel["layer"]) for panel in plain.spec["vconcat"]] == [2, 2]
    assert "Band" not in plain.caption
    assert plain.rows[-1]["ttft_ms"] is None
    full = load_chart({"A": ROWS}, MARKS)
    assert [len(panel["layer"]) for panel in full.spec["vconcat"]] == [5, 4]


def test_nothing_served_is_said_in_words():
    chart = load_chart({"A": [LoadRow(1.0, None, 0.0)]}, LoadMarks())
    assert (chart.spec, chart.alt) == ({}, "No load was served.")
