import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.unit.report.synthetic import toy_result
from tests.unit.telemetry.exposition import read_exposition
from twin.compare import compare
from twin.report.latencies import cdf, percentiles
from twin.report.metrics import summarise
from twin.report.numbers import percent, seconds, significant
from twin.report.occupancy import hold_seconds, integral_in_bins, serving_span
from twin.telemetry.perfetto import trace_events
from twin.telemetry.prometheus import prometheus_text

latencies = hnp.arrays(np.float64, st.integers(0, 200), elements=st.floats(0, 1e4))
runs = st.builds(
    toy_result,
    st.integers(1, 40),
    replicas=st.integers(1, 3),
    horizon_s=st.floats(0.05, 4.0),
)


@given(latencies)
def test_percentiles_are_ordered_and_within_the_values(values):
    figures = percentiles(values)
    if not values.size:
        assert set(figures.values()) == {None}
        return
    ordered = [figures[f"p{q}"] for q in (50, 90, 95, 99)]
    assert ordered == sorted(ordered)
    assert values.min() <= ordered[0]
    assert ordered[-1] <= values.max()


@given(latencies, st.integers(2, 60))
def test_a_cdf_rises_in_both_coordinates(values, points):
    x, p = cdf(values, points)
    assert x.size == p.size == (points if values.size else 0)
    assert (np.diff(x) >= 0).all()
    assert (np.diff(p) >= 0).all()
    assert (p < 1).all()


@settings(max_examples=30, deadline=None)
@given(runs, st.floats(0.01, 2.0), st.floats(0.001, 0.1), st.floats(1, 100))
def test_summaries_are_consistent(result, ttft_s, tpot_s, percentile):
    slo = {"ttft_s": ttft_s, "tpot_s": tpot_s, "percentile": percentile}
    summary = summarise(result, slo)
    json.dumps(summary, allow_nan=False)
    assert summary["requests"] == sum(summary[k] for k in ("finished", "rejected", "unfinished"))
    assert 0 <= summary["slo_attainment"] <= summary["finished"] / summary["requests"]
    if summary["requests_per_s"] is not None:
        assert 0 <= summary["goodput_requests_per_s"] <= summary["requests_per_s"]
    for name in ("kv_cache_usage", "running", "waiting"):
        if summary[name]["mean"] is not None:
            assert 0 <= summary[name]["mean"] <= summary[name]["max"] + 1e-9
    assert sum(summary["time_by_bound"].values()) <= 1 + 1e-9
    side = {"inputs": {"a": 1}, "summary": summary}
    assert {change.verdict for change in compare(side, side).figures} == {"same"}


@settings(max_examples=30, deadline=None)
@given(runs)
def test_a_looser_objective_never_lowers_attainment(result):
    shares = [
        summarise(result, {"ttft_s": limit, "tpot_s": limit})["slo_attainment"]
        for limit in (0.001, 0.01, 0.1, 1.0, 10.0)
    ]
    assert shares == sorted(shares)


@settings(max_examples=30, deadline=None)
@given(runs)
def test_states_of_a_replica_never_overlap_in_time(result):
    hold = hold_seconds(result, serving_span(result))
    steps = result.steps
    assert (hold >= 0).all()
    for replica in range(result.replicas):
        rows = steps.replica == replica
        begin = steps.scheduled_s[rows]
        assert (begin[:-1] + hold[rows][:-1] <= begin[1:] + 1e-12).all()


@settings(max_examples=30, deadline=None)
@given(runs, st.integers(1, 50))
def test_binning_loses_nothing(result, bins):
    steps = result.steps
    rows = steps.replica == 0
    begin, end = steps.start_s[rows], steps.end_s[rows]
    edges = np.linspace(0, max(steps.end_s.max(), 1e-3), bins + 1)
    area = integral_in_bins(steps.running[rows], begin, end, edges)
    assert np.isclose(area.sum(), np.dot(steps.running[rows], end - begin))


@settings(max_examples=20, deadline=None)
@given(runs, st.integers(0, 400))
def test_exports_are_valid_whatever_the_run(result, most):
    families = read_exposition(prometheus_text(result))
    name = "vllm:iteration_tokens_total"
    counted = sum(v for (n, _), v in families[name].samples.items() if n.endswith("_count"))
    assert counted == len(result.steps)
    events, note = trace_events(result, max_events=most)
    slices = sum(event["ph"] == "X" for event in events)
    assert (note == "") == (slices == len(result.steps))
    assert len(events) <= max(most, 3 * result.replicas)


@given(st.floats(1e-9, 1e9))
def test_three_digits_stay_within_half_a_percent(value):
    assert abs(float(significant(value).replace(",", "")) - value) <= 0.005 * value * 1.0001


@given(st.floats(0, 1))
def test_units_never_vanish(value):
    assert seconds(value).endswith(" ms") or seconds(value).endswith(" s")
    assert (percent(value) == "100 %") == (value == 1)
