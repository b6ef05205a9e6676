import itertools
import json
import re

import numpy as np
import pytest

from tests.unit.report.synthetic import empty_result, toy_result
from twin.report.charts.arrivals import ttft_over_time
from twin.report.charts.chart import MAX_MARKS
from twin.report.charts.latency import latency_cdf
from twin.report.charts.style import BACKGROUND, PALETTE, log_domain, log_ticks, themed
from twin.report.charts.timelines import kv_over_time, queue_over_time, steps_over_time
from twin.report.html import report_charts

vl_convert = pytest.importorskip("vl_convert")


@pytest.fixture(scope="module")
def result():
    return toy_result(200, horizon_s=8.0)


def _marks(node):
    """Count drawn marks in a Vega scenegraph by mark type (axes and legends apart)."""
    counts = {}
    if isinstance(node, dict):
        if node.get("role") in ("axis", "legend", "title", "axis-grid"):
            return counts
        if node.get("role") == "mark" and node.get("marktype") != "group":
            counts[node["marktype"]] = len(node["items"])
            return counts
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            for kind, number in _marks(child).items():
                counts[kind] = counts.get(kind, 0) + number
    return counts


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_chart_compiles_and_draws_at_most_2000_marks(result, theme):
    for chart in report_charts(result):
        scene = vl_convert.vegalite_to_scenegraph(themed(chart.spec, theme))
        counts = _marks(scene["scenegraph"])
        assert 0 < sum(counts.values()) <= MAX_MARKS, (chart.name, counts)
        assert len(chart.rows) <= MAX_MARKS


def test_every_chart_has_a_sentence_title_and_plain_rows(result):
    charts = report_charts(result)
    assert len({chart.name for chart in charts}) == len(charts) == 7
    for chart in charts:
        assert re.fullmatch(r"[A-Z].*\.", chart.alt), chart.alt
        assert chart.spec["description"] == chart.alt
        json.dumps(chart.rows, allow_nan=False)
        json.dumps(chart.spec, allow_nan=False)


def test_nothing_to_draw_is_said_in_words():
    for chart in report_charts(empty_result()):
        assert chart.spec == {}
        assert chart.alt.startswith("No ")


def test_cdf_rows_carry_the_percentile_and_its_tail_scale(result):
    chart = latency_cdf("itl", "ITL", {"run": result.itl_s}, slo_s=0.05)
    at = {round(row["percentile"], 3): row["latency_ms"] for row in chart.rows}
    assert at[0.0] == pytest.approx(result.itl_s.min() * 1e3, rel=1e-4)
    for row in chart.rows[::37]:
        assert row["nines"] == pytest.approx(-np.log10(1 - row["percentile"] / 100), abs=2e-3)
    assert "SLO is 50 ms" in chart.alt


def test_the_baseline_is_grey_and_dashed_the_run_solid(result):
    chart = latency_cdf("itl", "ITL", {"A": result.itl_s, "B": result.itl_s * 2})
    encoding = chart.spec["layer"][0]["encoding"]
    assert encoding["color"]["scale"]["range"] == [
        {"expr": "colour_baseline"},
        {"expr": "colour_current"},
    ]
    assert encoding["strokeDash"]["scale"]["range"][1] == [1, 0]


def test_slow_latencies_are_drawn_in_seconds_and_zero_gaps_survive_the_log_axis():
    chart = latency_cdf("e2e", "E2E", {"run": np.array([0.0, *np.linspace(1, 60, 200)])})
    assert "latency_s" in chart.rows[0]
    assert chart.rows[0]["latency_s"] > 0


def test_thinning_keeps_the_slowest_requests_and_says_so():
    big = toy_result(2_000, horizon_s=200.0, replicas=1)
    chart = ttft_over_time(big, slo_s=0.5)
    ttft = big.requests.first_token_s - big.requests.arrival_s
    known = np.isfinite(ttft)
    assert known.sum() > 1_500 == len(chart.rows)
    shown = {row["request"] for row in chart.rows}
    assert set(np.argsort(np.where(known, ttft, -1))[-18:].tolist()) <= shown
    assert re.search(r"1,500 of 1,\d{3} requests", chart.caption)


def test_misses_are_told_apart_by_shape_too(result):
    chart = ttft_over_time(result, slo_s=0.1)
    ttft = result.requests.first_token_s - result.requests.arrival_s
    missed = sum(row["outcome"] == "misses SLO" for row in chart.rows)
    assert missed == int((ttft > 0.1).sum()) > 0
    assert chart.spec["layer"][0]["encoding"]["shape"]["scale"]["range"] == [
        "circle", "triangle-up",
    ]  # fmt: skip


def test_kv_chart_counts_every_preemption_and_reaches_the_peak(result):
    chart = kv_over_time(result)
    assert sum(row["preemptions"] for row in chart.rows) == int(result.steps.preempted.sum()) > 0
    peak = 100 * result.steps.used_blocks.max() / result.usable_blocks
    assert max(row["peak_pct"] for row in chart.rows) == pytest.approx(peak, rel=1e-4)
    assert all(row["mean_pct"] <= row["peak_pct"] + 1e-9 for row in chart.rows)


def test_step_chart_keeps_every_token_and_shares_within_one(result):
    chart = steps_over_time(result)
    tokens = sum(
        (row["prefill"] + row["decode"]) * (row["t_end_s"] - row["t_s"]) for row in chart.rows
    )
    exact = (result.steps.prefill_tokens + result.steps.decode_tokens).sum()
    assert tokens == pytest.approx(exact, rel=5e-3)
    for row in chart.rows:
        assert row["compute"] + row["hbm"] + row["link"] + row["launch"] <= 1 + 1e-3


def test_queue_chart_sums_replicas(result):
    chart = queue_over_time(result)
    most = max(row["requests"] for row in chart.rows if row["state"] == "running")
    assert result.steps.running.max() < most <= 2 * result.steps.running.max()


def test_log_ticks_and_domain():
    assert log_ticks(1, 50) == [1, 2, 5, 10, 20, 50]
    assert log_ticks(1, 1e6) == [1, 10, 100, 1e3, 1e4, 1e5, 1e6]
    assert log_ticks(0, 1) == []
    assert log_domain(13, 480) == (10, 500)
    assert log_domain(10, 500) == (10, 500)
    assert log_domain(5, 5) == (5, 50)


def _luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def _contrast(one, other):
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("role", "theme"),
    [*itertools.product(("baseline", "current", "slo", "decode"), ("light", "dark"))],
)
def test_lines_and_points_have_a_contrast_of_three_to_one(role, theme):
    assert _contrast(PALETTE[role][theme], BACKGROUND[theme]) >= 3
