"""TTFT and goodput by load."""

import json
import re

import pytest

from twin.report.charts.chart import MAX_MARKS
from twin.report.charts.load import LoadMarks, LoadRow, load_chart
from twin.report.charts.style import themed

vl_convert = pytest.importorskip("vl_convert")

ROWS = [
    LoadRow(2.0, 0.1, 2.0, True),
    LoadRow(10.0, 0.4, 9.0, True),
    LoadRow(20.0, 4.0, 1.0, False),
]
MARKS = LoadMarks(percentile=95, slo_s=0.5, knee=10.0, error=0.25, basis="P90 error ±25 %")


def test_it_draws_in_both_themes_and_says_what_it_shows():
    chart = load_chart({"A": ROWS, "B": ROWS}, MARKS)
    for theme in ("light", "dark"):
        assert "<svg" in vl_convert.vegalite_to_svg(themed(chart.spec, theme))
    assert re.fullmatch(r"[A-Z].*\.", chart.alt)
    assert "B: P95 TTFT 100 ms at 2.00 and 4.00 s at 20.0 req/s; the SLO is 500 ms" in chart.alt
    assert "Band: P90 error ±25 %." in chart.caption
    json.dumps(chart.spec, allow_nan=False)
    assert len(chart.rows) <= MAX_MARKS


def test_the_band_is_the_last_runs():
    rows = load_chart({"A": ROWS, "B": ROWS}, MARKS).rows
    assert [(r["low_ms"], r["high_ms"]) for r in rows[:2]] == [(100, 100), (400, 400)]
    assert [(r["low_ms"], r["high_ms"]) for r in rows[3:5]] == [(80, 125), (320, 500)]


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
