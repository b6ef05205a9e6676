"""What binds a run."""

import pytest

from tests.unit.search.judging.fake_runs import SUMMARY
from twin.engine import simulate
from twin.load import load_scenario
from twin.report.metrics import summarise
from twin.search.judging.binding import BUSY, FULL, binding

INPUTS = {"policy": {"max_num_seqs": 20}, "workload": {"kind": "closed_loop"}}


def bound(**changes):
    return binding({**SUMMARY, **changes}, INPUTS)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({}, "arrivals"),
        ({"gpu_busy_share": BUSY}, "HBM"),
        ({"gpu_busy_share": BUSY - 0.01}, "arrivals"),
        ({"gpu_busy_share": 0.9, "time_by_bound": {"compute": 0.6, "hbm": 0.4}}, "compute"),
        ({"preemptions": 1}, "KV capacity"),
        (
            {"waiting": {"mean": 3.0, "max": 9}, "kv_cache_usage": {"mean": 0.9, "max": FULL}},
            "KV capacity",
        ),
        ({"waiting": {"mean": 3.0, "max": 9}}, "the cap on requests"),
        ({"waiting": {"mean": 3.0, "max": 9}, "running": {"mean": 9.0, "max": 19}}, "HBM"),
    ],
)
def test_rules(changes, what):
    assert bound(**changes).what == what


def test_a_busy_gpu_that_keeps_up_is_bound_by_arrivals():
    inputs = {**INPUTS, "workload": {"kind": "synthetic"}}
    found = binding({**SUMMARY, "gpu_busy_share": 1.0}, inputs)
    assert found.what == "arrivals"
    assert "throughput is what arrives" in found.sentence


def test_a_real_run_out_of_memory():
    overrides = {
        "policy.num_gpu_blocks": 600,
        "workload.num_requests": 60,
        "policy.max_model_len": 9000,
    }
    result = simulate(load_scenario("chat-h100", overrides))
    found = binding(summarise(result), result.inputs)
    assert found.what == "KV capacity"
    assert "of the blocks in use at the peak" in found.sentence


def test_a_real_run_at_its_cap():
    result = simulate(
        load_scenario("chat-h100", {"policy.max_num_seqs": 2, "workload.num_requests": 60})
    )
    assert binding(summarise(result), result.inputs).what == "the cap on requests"
