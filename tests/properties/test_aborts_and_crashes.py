"""Requests given up and replicas that crash, at random instants."""

import numpy as np
import pytest

from tests.properties.chaos import simulate_in_chaos
from tests.properties.random_scenarios import random_scenario
from twin.engine.result import FAILED, FINISHED
from twin.load import scenario_from

IN_A_TEST = 60
IN_AN_AUDIT = 400
OUTPUT = 60


def assert_same(plain, fast):
    for name in ("requests", "steps"):
        ours, theirs = getattr(fast, name), getattr(plain, name)
        for column in type(ours).__dataclass_fields__:
            np.testing.assert_array_equal(
                getattr(ours, column), getattr(theirs, column), err_msg=f"{name}.{column}"
            )
    np.testing.assert_array_equal(fast.itl_s, plain.itl_s)
    assert fast.prefix == plain.prefix
    assert fast.simulated_s == plain.simulated_s


@pytest.mark.parametrize("seed", range(IN_A_TEST))
def test_both_engines_take_them_alike(seed, monkeypatch):
    assert_alike(seed, monkeypatch)


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(IN_A_TEST, IN_AN_AUDIT))
def test_many_more(seed, monkeypatch):
    assert_alike(seed, monkeypatch)


def assert_alike(seed, monkeypatch):
    scenario = scenario_from(random_scenario(seed))
    dice = seed, (0.02, 0.1, 0.5)[seed % 3], (0.0, 0.3)[seed % 2]
    plain, struck, _ = simulate_in_chaos(scenario, "reference", monkeypatch, dice)
    fast, also, _ = simulate_in_chaos(scenario, "fast", monkeypatch, dice)
    assert struck == also
    assert_same(plain, fast)


ENGINES = {
    "vllm": {},
    "vllm in step": {"gpu": "h200_sxm", "llm": "mixtral-8x7b", "parallelism": {"dp": 2, "ep": 2}},
    "vllm by rank": {"parallelism": {"dp": 3}},
    "vllm pipeline": {"parallelism": {"pp": 2}},
    "sglang": {"engine": {"name": "sglang"}},
    "trtllm": {"engine": {"name": "trtllm"}},
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_is_lost_and_nothing_stays_held(engine, seed, monkeypatch):
    scenario = scenario_from({**_busy(seed), **ENGINES[engine]})
    dice = seed, (0.01, 0.1)[seed % 2], (0.0, 0.2, 0.5)[seed % 3]
    result, struck, loop = simulate_in_chaos(scenario, "fast", monkeypatch, dice)
    assert struck["aborted"]
    outcome = result.requests.outcome
    assert set(outcome) <= {FINISHED, FAILED}
    assert (outcome == FAILED).sum() == struck["aborted"] + struck["failed"]
    whole = result.requests.output_tokens == OUTPUT
    np.testing.assert_array_equal(whole[outcome == FINISHED], True)
    assert loop._ended == len(result.requests)
    for member in loop.membership.members:
        assert not member.load_requests
        for core in member.instance.engines if member.instance else ():
            scheduler = core.scheduler
            assert not scheduler.num_running
            assert not scheduler.num_waiting
            assert not scheduler.has_unfinished()
            assert scheduler.free_blocks == scheduler.usable_blocks


def _busy(seed):
    return {
        "schema_version": 1,
        "llm": "llama-3.1-8b",
        "gpu": "h100_sxm",
        "policy": {
            "max_model_len": 1024,
            "max_num_seqs": 16,
            "max_num_batched_tokens": 1024,
            "async_scheduling": bool(seed % 2),
        },
        "workload": {
            "kind": "closed_loop",
            "concurrency": 24,
            "num_requests": 72,
            "prompt_tokens": {"kind": "uniform", "low": 1, "high": 600},
            "output_tokens": OUTPUT,
        },
        "cluster": {"replicas": 2},
        "seed": seed,
    }
