"""What requests wait for, in runs that lack one thing each."""

import pytest

from twin.engine import simulate
from twin.load import load_scenario
from twin.sweep.waits import REASONS, seats_of, waits

CROWD = {
    "workload.num_requests": 150,
    "workload.arrivals.rate": 1000,
    "workload.prompt_tokens": 600,
    "workload.output_tokens": 100,
    "policy.max_model_len": 4096,
}


def waited(**policy):
    scenario = load_scenario("chat-h100", {**CROWD, **policy})
    return waits(scenario, simulate(scenario))


@pytest.mark.parametrize(
    ("reason", "lacks"),
    [
        ("max_num_seqs", {"policy.max_num_seqs": 8}),
        ("token_budget", {"policy.max_num_batched_tokens": 512}),
        ("kv", {"policy.num_gpu_blocks": 400}),
    ],
)
@pytest.mark.parametrize("stride", ["full", {"kind": "sampled", "every": 7}])
def test_the_reason_is_what_is_short(reason, lacks, stride):
    found = waited(recording=stride, **lacks)
    assert set(found) == set(REASONS)
    assert max(found, key=found.get) == reason
    assert 0.5 < found[reason] <= 1
    assert sum(found.values()) <= 1 + 1e-9


def test_blocks_reserved_for_answers_that_nobody_limits_are_short_though_unused():
    told = {"engine": {"name": "trtllm"}, "policy.num_gpu_blocks": 1024}  # 128 a request
    scenario = load_scenario("chat-h100", {**CROWD, **told})
    result = simulate(scenario)
    assert result.steps.used_blocks.max() < 0.5 * result.usable_of_core[0]
    assert waits(scenario, result)["kv"] > 0.9
    assert waited(**told, **{"workload.finish": "length"})["kv"] < 0.9


def test_nobody_waits_when_few_come():
    assert waited(**{"workload.arrivals.rate": 1}) == dict.fromkeys(REASONS, 0.0)


def test_each_pool_has_its_own_seats():
    pools = [{"policy": {"max_num_seqs": 8, "max_model_len": 4096}}, {}]
    assert waited(cluster={"pools": pools})["max_num_seqs"] > 0.3


def test_seats_of_sglang_are_those_of_its_pool():
    scenario = load_scenario("chat-h100", {"engine": {"name": "sglang"}})
    assert seats_of(scenario) < scenario.policy.max_num_seqs
