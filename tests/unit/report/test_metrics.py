import json
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.report.by_hand import hand_result
from tests.unit.report.synthetic import empty_result, toy_result
from twin.compare.directions import DIRECTIONS, NOT_FIGURES
from twin.errors import InputError
from twin.report.metrics import shares, summarise


def test_counts_and_latencies_match_the_table_worked_by_hand():
    summary = summarise(hand_result())
    assert [summary[k] for k in ("requests", "finished", "rejected", "unfinished")] == [5, 3, 1, 1]
    # TTFT: 0.5, 0.2, 1.0 s
    assert summary["ttft_s"]["p50"] == pytest.approx(0.5)
    assert summary["ttft_s"]["mean"] == pytest.approx(1.7 / 3)
    assert summary["ttft_s"]["p90"] == pytest.approx(0.5 + 0.8 * 0.5)
    # TPOT: 1.0 / 10 and 1.0 / 4; the answer of one token has none
    assert summary["tpot_s"]["mean"] == pytest.approx((0.1 + 0.25) / 2)
    assert summary["e2e_s"]["p50"] == pytest.approx(1.5)
    assert summary["queue_s"]["mean"] == pytest.approx((0.1 + 0.0 + 0.5) / 3)
    assert summary["itl_s"]["p50"] == pytest.approx(0.1)


def test_rates_count_finished_requests_until_the_run_was_cut_off():
    # One request is unfinished when the run ends at 6 s, so the last finish (4 s) is no end.
    summary = summarise(hand_result())
    assert summary["requests_per_s"] == pytest.approx(3 / 6)
    assert summary["input_tokens_per_s"] == pytest.approx(180 / 6)
    assert summary["output_tokens_per_s"] == pytest.approx(17 / 6)


def test_goodput_and_attainment_count_lost_requests_as_failed():
    slo = {"ttft_s": 0.5, "tpot_s": 0.2, "percentile": 50}
    summary = summarise(hand_result(), slo)
    # Row 0 meets both, exactly at the TTFT limit; row 1 has no TPOT and meets; row 2 misses.
    assert summary["goodput_requests_per_s"] == pytest.approx(2 / 6)
    assert summary["slo_attainment"] == pytest.approx(2 / 5)


@pytest.mark.parametrize(
    ("slo", "met"),
    [
        # P50 of 0.2, 0.5, 1.0, never, never (the last has waited 1 s at the end) is 1.0 s.
        ({"ttft_s": 0.999, "percentile": 50}, False),
        # A limit of 1.0 s: row 4 has not waited longer yet, so P50 of 0.2, 0.5, 1, never is 0.75.
        ({"ttft_s": 1.0, "percentile": 50}, True),
        ({"ttft_s": 1.0, "percentile": 90}, False),
        # TPOT 0.1, 0.25, never: P50 is 0.25.
        ({"tpot_s": 0.25, "percentile": 50}, True),
        ({"tpot_s": 0.2499, "percentile": 50}, False),
        ({"ttft_s": 1.0, "tpot_s": 0.2499, "percentile": 50}, False),
        ({"ttft_s": 0.1, "tpot_s": 0.25, "percentile": 50}, False),
        ({}, None),
    ],
)
def test_slo_is_met_at_its_percentile_with_lost_requests_never_served(slo, met):
    assert summarise(hand_result(), slo)["slo_met"] is met


def test_the_slo_of_the_inputs_is_taken_unless_one_is_given():
    result = hand_result(slo={"ttft_s": 1.0, "percentile": 50})
    assert summarise(result)["slo_met"] is True
    assert summarise(result, {"ttft_s": 0.1})["slo_met"] is False


def test_cache_figures_are_time_means_with_idle_time_as_zero():
    summary = summarise(hand_result())
    # Replica 0: 10 blocks from 0.1 to 1.5 (then it is empty), 2 from 2.5 to 3.0, 5 to 4.0.
    # Replica 1: 4 blocks from 1.0 to 1.2. Span 6 s, two replicas, 20 blocks each.
    used = 10 * 1.4 + 2 * 0.5 + 5 * 1.0 + 4 * 0.2
    assert summary["kv_cache_usage"]["mean"] == pytest.approx(used / (6 * 2 * 20))
    assert summary["kv_cache_usage"]["max"] == pytest.approx(0.5)
    assert summary["waiting"] == {"mean": pytest.approx(3 * 0.5 / 12), "max": 3.0}
    assert summary["prefix_cache_hit_rate"] == pytest.approx(0.25)
    assert summary["preemptions"] == 2


def test_shares_of_gpu_time_by_bound():
    summary = summarise(hand_result())
    busy = 0.8 + 0.2 + 0.3 + 1.0
    assert summary["time_by_bound"] == {
        "compute": pytest.approx(1.1 / busy),
        "hbm": pytest.approx(1.0 / busy),
        "link": 0.0,
        "launch": pytest.approx(0.2 / busy),
    }
    assert summary["gpu_busy_share"] == pytest.approx(busy / 12)


def test_warm_up_requests_leave_latencies_but_not_rates():
    cold, warm = summarise(hand_result()), summarise(hand_result(warmup_requests=1))
    assert warm["ttft_s"]["mean"] == pytest.approx((0.2 + 1.0) / 2)
    assert warm["requests_per_s"] == cold["requests_per_s"]
    assert warm["warmup_requests"] == 1
    slo = {"ttft_s": 0.5}
    assert summarise(hand_result(warmup_requests=1), slo)["slo_attainment"] == pytest.approx(1 / 4)


def test_an_empty_run_has_no_nan_and_no_made_up_latency():
    summary = summarise(empty_result(), {"ttft_s": 1.0})
    text = json.dumps(summary, allow_nan=False)
    assert "NaN" not in text
    assert summary["ttft_s"] == dict.fromkeys(["mean", "p50", "p90", "p95", "p99"])
    assert summary["requests_per_s"] is None
    assert summary["slo_met"] is None
    assert summary["prefix_cache_hit_rate"] == 0


def test_the_summary_is_plain_json_in_a_fixed_order():
    one = json.dumps(summarise(toy_result()), allow_nan=False)
    other = json.dumps(summarise(toy_result()), allow_nan=False)
    assert one == other
    assert json.loads(one)["schema_version"] == 1


def test_every_figure_of_a_summary_has_a_registered_direction():
    assert set(summarise(toy_result())) - set(NOT_FIGURES) <= set(DIRECTIONS)


def test_toy_run_has_every_kind_of_request_and_agrees_with_its_tables():
    result = toy_result()
    summary = summarise(result)
    assert summary["finished"] > 0
    assert summary["rejected"] > 0
    assert summary["unfinished"] > 0
    assert summary["preemptions"] == int(result.steps.preempted.sum()) > 0
    assert result.itl_s.size == int(np.maximum(result.requests.output_tokens - 1, 0).sum())


@pytest.mark.parametrize(
    "slo", [{"ttft_s": 0}, {"tpot_s": "fast"}, {"ttft_s": 1, "percentile": 0}, {"percentile": 101}]
)
def test_an_impossible_objective_is_an_input_error(slo):
    with pytest.raises(InputError, match=r"^slo\."):
        summarise(hand_result(), slo)


def test_shares_of_nothing_are_zero():
    assert shares({"a": 0.0, "b": 0.0}) == {"a": 0.0, "b": 0.0}


def test_rates_end_with_the_last_finish_when_everything_finished():
    result = hand_result()
    done = result.requests.outcome == 0
    columns = {
        name: getattr(result.requests, name)[done]
        for name in type(result.requests).__slots__
        if name != "name"
    }
    names = tuple(n for n, keep in zip(result.requests.name, done, strict=True) if keep)
    whole = replace(result, requests=type(result.requests)(**columns, name=names))
    assert summarise(whole)["requests_per_s"] == pytest.approx(3 / 4)


def test_a_queue_that_grows_is_called_so():
    def result(waits_s):
        count = len(waits_s)
        base = toy_result()
        columns = {
            name: np.resize(getattr(base.requests, name), count)
            for name in type(base.requests).__slots__
            if name != "name"
        }
        columns["arrival_s"] = np.arange(float(count))
        columns["scheduled_s"] = columns["arrival_s"] + np.array(waits_s)
        columns["finish_s"] = columns["scheduled_s"] + 1.0
        columns["outcome"] = np.zeros(count, dtype=np.int64)
        names = tuple(str(i) for i in range(count))
        return replace(base, requests=type(base.requests)(**columns, name=names))

    assert summarise(result([0.01 + 0.05 * i for i in range(100)]))["queue_grows"] is True
    assert summarise(result([0.01] * 100))["queue_grows"] is False
    # A first wave that queues and is then served, as in a closed loop.
    assert summarise(result([5.0] * 20 + [0.1] * 80))["queue_grows"] is False
    assert summarise(result([0.01 + 0.5 * i for i in range(49)]))["queue_grows"] is False
    # All at once: the last of a burst waits longest, and no queue grows.
    burst = result([0.01 + 0.05 * i for i in range(100)])
    at_once = replace(burst.requests, arrival_s=np.zeros(100))
    assert summarise(replace(burst, requests=at_once))["queue_grows"] is False


def test_busy_share_counts_what_keeps_gpus_busy_not_what_overlaps():
    result = hand_result()
    whole = summarise(result)
    busy_s = np.array([0.2, 0.1, 0.1, 0.5])
    part = summarise(replace(result, steps=replace(result.steps, busy_s=busy_s)))
    assert part["step_s"] == whole["step_s"]
    ratio = busy_s.sum() / (result.steps.end_s - result.steps.start_s).sum()
    assert part["gpu_busy_share"] == pytest.approx(ratio * whole["gpu_busy_share"])
    assert part["time_by_bound"]["hbm"] == pytest.approx(0.5 / 0.9)
