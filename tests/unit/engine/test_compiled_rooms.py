"""Compiled engines hold arrays for what a replica can do, not for what its policy would allow."""

import pytest

pytest.importorskip("numba")

from tests.properties.test_engines_agree import assert_same
from twin.engine.compiled.fleet import CompiledFleet
from twin.engine.engines import engine_costs, step_timer, vllm_limits
from twin.load import scenario_from

SCENARIO = {
    "schema_version": 1,
    "llm": "llama-3.1-8b",
    "gpu": "h100_sxm",
    "policy": {
        "max_num_seqs": 10**9,
        "max_num_batched_tokens": 10**9,
        "max_model_len": 64,
        "num_gpu_blocks": 20,
        "enable_prefix_caching": False,
    },
    "workload": {
        "kind": "synthetic",
        "num_requests": 40,
        "arrivals": {"kind": "constant", "rate": 1e6},
        "prompt_tokens": {"kind": "uniform", "low": 1, "high": 40},
        "output_tokens": {"kind": "uniform", "low": 1, "high": 24},
    },
}


def test_a_policy_without_bounds_costs_no_memory():
    scenario = scenario_from(SCENARIO)
    costs = engine_costs(scenario)
    fleet = CompiledFleet(vllm_limits(scenario), step_timer(scenario, costs), costs.host)
    arrays = [*fleet.state, *fleet.book.prices]
    assert sum(array.nbytes for array in arrays) < 32 * 2**20


@pytest.mark.parametrize("prompt_tokens", [1, {"kind": "uniform", "low": 1, "high": 40}])
@pytest.mark.parametrize("block_size", [4, 16])
def test_as_many_run_as_there_are_blocks(block_size, prompt_tokens):
    scenario = scenario_from(
        SCENARIO,
        overrides={"policy.block_size": block_size, "workload.prompt_tokens": prompt_tokens},
    )
    result = assert_same(scenario)
    assert result.steps.running.max() <= 19
    assert prompt_tokens != 1 or result.steps.running.max() == 19
    assert result.requests.preemptions.sum() > 0
