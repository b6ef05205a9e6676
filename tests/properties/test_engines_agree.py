"""The fast engines give what the reference engine gives, bit for bit."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from hwmodels.memory.fits import MEMORY_FITS
from tests.properties.random_scenarios import random_scenario
from twin.engine import simulate
from twin.load import scenario_from

IN_A_TEST = 100
IN_AN_AUDIT = 600


FAST = ("interpreted", *(("compiled",) if find_spec("numba") else ()))


def assert_same(scenario):
    """Compare the engines in all they say; return the interpreted one's result."""
    plain = simulate(scenario, engine="reference")
    assert plain.skipped_steps == 0
    results = [assert_equal(simulate(scenario, engine=engine), plain) for engine in FAST]
    return results[0]


def assert_equal(fast, plain):
    """Compare two results; return the first."""
    for name in ("requests", "steps", "events", "fleet"):
        ours, theirs = getattr(fast, name), getattr(plain, name)
        for column in type(ours).__dataclass_fields__:
            np.testing.assert_array_equal(
                getattr(ours, column), getattr(theirs, column), err_msg=f"{name}.{column}"
            )
    np.testing.assert_array_equal(fast.itl_s, plain.itl_s)
    assert fast.prefix == plain.prefix
    # Sums over the whole run, taken in another order.
    assert fast.time_by_source_s == pytest.approx(plain.time_by_source_s, rel=1e-9)
    assert fast.simulated_s == plain.simulated_s
    assert fast.steps_taken == plain.steps_taken
    return fast


@pytest.mark.parametrize("seed", range(IN_A_TEST))
def test_on_random_scenarios(seed):
    assert_same(scenario_from(random_scenario(seed)))


@pytest.mark.parametrize("seed", range(12))
def test_on_kv_layouts_that_cost(seed, monkeypatch):
    """Small scenarios never leave a GPU's TLB: here it holds 32 MB and has one slow walker."""
    poor = replace(
        MEMORY_FITS["h100_sxm"],
        tlb_l1_entries=1,
        tlb_l2_reach_bytes=2.0**25,
        tlb_l3_reach_bytes=2.0**25,
        walkers=1.0,
        walk_cycles=1e5,
    )
    monkeypatch.setattr("twin.engine.kv_layout.memory_fit_for", lambda *_: poor)
    data = random_scenario(seed) | {"kv_layout": {"pools": "cross_layer", "order": "scattered"}}
    data["cluster"] = {"replicas": 1}
    for cut in ("clients", "horizon_s"):
        data.pop(cut, None)
    if data["gpu"] == "rtx_4090":
        data["gpu"] = "l40s"
    scenario = scenario_from(data)
    laid_out = assert_same(scenario)
    usual = simulate(scenario_from({**data, "kv_layout": {}}))
    assert not np.array_equal(laid_out.requests.finish_s, usual.requests.finish_s)


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(IN_A_TEST, IN_AN_AUDIT))
def test_on_many_more(seed):
    assert_same(scenario_from(random_scenario(seed)))


CALM = {
    "vllm": {},
    "sglang": {"engine": {"name": "sglang"}},
    "trtllm": {"engine": {"name": "trtllm"}},
    "measured layers": {"gpu": "rtx_4090"},
    "ranks that tell their counts": {"parallelism": {"dp": 2}},
    "ranks that don't": {
        "parallelism": {"dp": 2},
        "engine": {"name": "vllm", "version": "0.19.0"},
    },
}


@pytest.mark.parametrize("name", CALM)
def test_most_steps_of_a_calm_run_are_skipped(name):
    scenario = scenario_from(
        {
            "schema_version": 1,
            "llm": "llama-3.1-8b",
            "gpu": "h100_sxm",
            "policy": {"max_model_len": 1024, "gpu_memory_utilization": 0.95},
            "workload": {
                "kind": "closed_loop",
                "concurrency": 8,
                "num_requests": 24,
                "prompt_tokens": 300,
                "output_tokens": 200,
            },
            **CALM[name],
        }
    )
    result = assert_same(scenario)
    assert result.skipped_steps > 0.9 * len(result.steps)
