"""The engines agree under every eviction policy where memory is scarce and prefixes come back."""

import random

import pytest

from tests.properties.test_engines_agree import assert_same
from twin.engine import simulate
from twin.load import scenario_from
from twin.paging.eviction import EVICTION


def scarce_scenario(eviction, seed):
    """Return sessions or shared prefixes on a few blocks, as plain data."""
    rng = random.Random(seed)
    length = {"kind": "uniform", "low": 1, "high": 200}
    policy = {
        "max_model_len": 1024,
        "max_num_seqs": 8,
        "block_size": 16,
        "num_gpu_blocks": 66 + rng.choice([0, 30, 90]),
        "eviction": eviction,
        "async_scheduling": rng.random() < 0.5,
    }
    if eviction == "ttl":
        policy["eviction_ttl_s"] = rng.choice([0.2, 1.0])
    sessions = {
        "kind": "sessions",
        "arrivals": {"kind": "poisson", "rate": 6},
        "num_sessions": 20,
        "turns": 3,
        "system_prompt_tokens": 100,
        "message_tokens": {"kind": "uniform", "low": 1, "high": 60},
        "answer_tokens": {"kind": "uniform", "low": 1, "high": 60},
        "next_turn": {"kind": "after_answer", "think_time_s": 0.2},
    }
    prefixes = {
        "kind": "synthetic",
        "num_requests": 60,
        "arrivals": {"kind": "poisson", "rate": 12},
        "prompt_tokens": {**length, "high": 100},
        "output_tokens": length,
        "prefixes": {"num_prefixes": 8, "prefix_tokens": 170},
    }
    return {
        "schema_version": 1,
        "llm": "llama-3.1-8b",
        "gpu": "h100_sxm",
        "policy": policy,
        "workload": sessions if seed % 2 else prefixes,
        "cluster": {"replicas": 2, "router": "prefix_aware"} if seed % 3 else {"replicas": 1},
        "seed": seed,
    }


@pytest.mark.parametrize("eviction", sorted(EVICTION))
def test_engines_agree(eviction):
    for seed in range(4):
        assert_same(scenario_from(scarce_scenario(eviction, seed)))


@pytest.mark.parametrize("eviction", sorted(set(EVICTION) - {"lru"}))
def test_the_policy_makes_a_difference(eviction):
    """Else the test above would say nothing."""
    hits = {
        name: [
            simulate(scenario_from(scarce_scenario(name, seed))).prefix.hits for seed in range(4)
        ]
        for name in ("lru", eviction)
    }
    assert hits["lru"] != hits[eviction]
