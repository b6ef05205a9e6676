"""What the lazy core hands over, the plain scheduler takes up."""

import pytest

from tests.properties.test_engines_agree import assert_same
from twin.engine.lazy import replica as lazy_replica
from twin.load import scenario_from


def scenario(**more):
    workload = {
        "kind": "closed_loop",
        "concurrency": 12,
        "num_requests": 40,
        "prompt_tokens": {"kind": "uniform", "low": 50, "high": 400},
        "output_tokens": {"kind": "uniform", "low": 50, "high": 300},
    }
    policy = {"max_model_len": 1024, "block_size": 16, "max_num_batched_tokens": 512}
    policy |= more.pop("policy", {})
    return scenario_from(
        {
            "schema_version": 1,
            "llm": "llama-3.1-8b",
            "gpu": "h100_sxm",
            "engine": {"name": "vllm", "version": "0.33.0"},
            "workload": workload,
            "policy": policy,
            **more,
        }
    )


@pytest.fixture
def handed_over(monkeypatch):
    """Requests that ran when a lazy core handed over, one number a time."""
    seen, original = [], lazy_replica.hand_over

    def spy(core, flights, scheduler):
        seen.append(len(core.running))
        return original(core, flights, scheduler)

    monkeypatch.setattr(lazy_replica, "hand_over", spy)
    return seen


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("caching", [True, False])
def test_short_of_blocks_it_hands_over(handed_over, ahead, caching):
    policy = {"num_gpu_blocks": 80, "async_scheduling": ahead, "enable_prefix_caching": caching}
    result = assert_same(scenario(policy=policy))
    assert max(handed_over) > 1
    assert result.requests.preemptions.sum() > 0


@pytest.mark.parametrize("ahead", [True, False])
def test_with_ample_blocks_it_serves_to_the_end(handed_over, ahead):
    result = assert_same(scenario(policy={"async_scheduling": ahead}))
    assert max(handed_over) == 0
    assert result.skipped_steps > 0.5 * len(result.steps)


def test_the_end_of_the_simulation_cuts_a_run(handed_over):
    result = assert_same(scenario(horizon_s=1.234))
    assert (result.requests.outcome == 2).any()
    assert not handed_over


def test_few_places_keep_others_waiting():
    assert_same(scenario(policy={"max_num_seqs": 5}))
