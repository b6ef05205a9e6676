"""Whole runs of a replica with pipeline stages."""

import numpy as np
import pytest

from hwmodels.host import HostCosts
from tests.unit.engine import support
from twin.engine import simulate
from twin.errors import InputError
from twin.load import scenario_from
from twin.report.metrics import summarise
from twin.request import Request

D = 1.0
SLEEP_S = 1e-3

SCENARIO = {
    "schema_version": 1,
    "llm": "llama-3.1-8b",
    "gpu": "h100_sxm",
    "workload": {
        "kind": "closed_loop",
        "concurrency": 64,
        "num_requests": 192,
        "prompt_tokens": 200,
        "output_tokens": 60,
    },
}


def one(index=0, arrival_s=0.0, output=3):
    return Request(index=index, arrival_s=arrival_s, prompt_tokens=10, max_tokens=output)


def run(requests, stage_s=(D, D), host=support.NO_HOST, **limits):
    source = support.ListSource(requests)
    engine, _, _ = support.run(source, host=host, stage_s=stage_s, **limits)
    return engine.requests.table(), engine.steps.table(), list(engine.requests.itl_s)


def test_a_lone_request_passes_one_stage_after_another():
    table, steps, gaps = run([one()])
    # Each token takes both stages; an empty call in between costs vLLM a millisecond's sleep.
    assert table.first_token_s[0] == pytest.approx(2 * D)
    assert gaps == pytest.approx([2 * D + SLEEP_S] * 2)
    assert steps.end_s - steps.start_s == pytest.approx(2 * D)
    assert steps.busy_s == pytest.approx([D] * 3)


def test_asynchronously_its_next_token_starts_when_the_last_is_sampled():
    _, steps, gaps = run([one()], async_scheduling=True)
    assert gaps == pytest.approx([2 * D] * 2)
    assert list(steps.start_s[1:]) == list(steps.end_s[:-1])


def test_two_requests_take_turns():
    table, steps, _ = run([one(0), one(1)], max_num_batched_tokens=10)
    # The budget keeps them apart: the second follows the first through the stages.
    assert table.first_token_s.tolist() == [2 * D, 3 * D]
    assert table.finish_s.tolist() == [6 * D, 7 * D]
    assert np.all(steps.start_s[1:] < steps.end_s[:-1])


def test_one_that_comes_while_the_engine_waits_joins_the_same_batch():
    """vLLM fills its queue with an empty call and then waits for the first step, deaf to all."""
    table, steps, _ = run([one(0), one(1, arrival_s=0.5)])
    second_s = 2 * D + SLEEP_S
    assert table.scheduled_s.tolist() == [0.0, second_s]
    assert table.first_token_s.tolist() == [2 * D, second_s + 2 * D]
    assert np.all(steps.start_s[1:] >= steps.end_s[:-1])


def test_a_prompt_in_chunks_fills_the_stages():
    request = Request(index=0, arrival_s=0.0, prompt_tokens=40, max_tokens=1)
    table, steps, _ = run([request], max_num_batched_tokens=10)
    assert len(steps) == 4
    assert table.first_token_s[0] == pytest.approx((4 + 1) * D)


def test_host_times_of_a_lone_request():
    host = HostCosts(0.125, 0.0, 0.0625, 0.0, 0.03125, 0.0, source="test")
    table, _, _ = run([one(output=1)], host=host)
    # Schedule, both stages, wake-up, update; the empty call runs beside them.
    assert table.first_token_s[0] == 0.125 + 2 * D + 0.03125 + 0.0625


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_scenario_with_two_stages(asynchronous):
    overrides = {"parallelism.pp": 2, "policy.async_scheduling": asynchronous}
    scenario = scenario_from(SCENARIO, overrides=overrides)
    one_stage = scenario_from(SCENARIO)
    # Half the layers a GPU: more than twice the blocks.
    assert scenario.num_gpu_blocks > 2 * one_stage.num_gpu_blocks
    assert any("Pipeline parallelism" in note for note in scenario.notes)
    result, alone = simulate(scenario), simulate(one_stage)
    summary = summarise(result)
    assert summary["finished"] == 192
    assert 0.5 < summary["gpu_busy_share"] < 1
    assert result.steps.busy_s.max() < alone.steps.busy_s.max()
    overlaps = result.steps.start_s[1:] < result.steps.end_s[:-1]
    assert overlaps.mean() > 0.25
    # Busy seconds by source are those of the steps.
    assert sum(result.time_by_source_s.values()) == pytest.approx(result.steps.busy_s.sum())


def test_two_stages_serve_more_than_one_and_at_most_twice_as_much():
    rates = [
        summarise(simulate(scenario_from(SCENARIO, overrides=o)))["output_tokens_per_s"]
        for o in ({}, {"parallelism.pp": 2})
    ]
    assert rates[0] < rates[1] <= 2 * rates[0]


def test_dense_ranks_may_have_stages():
    overrides = {"parallelism.pp": 2, "parallelism.dp": 2}
    result = simulate(scenario_from(SCENARIO, overrides=overrides))
    assert result.replicas == 2
    assert summarise(result)["finished"] == 192


@pytest.mark.parametrize("engine", ["reference", "interpreted"])
def test_replicas_with_stages_stand_beside_others(engine):
    pools = [{"parallelism": {"pp": 2}}, {"parallelism": {"tp": 2}}]
    scenario = scenario_from({**SCENARIO, "cluster": {"pools": pools}})
    steps = simulate(scenario, engine=engine).steps
    staged, whole = steps.replica == 0, steps.replica == 1
    took_s = steps.end_s - steps.start_s
    assert (steps.busy_s[whole] == took_s[whole]).all()
    assert (steps.busy_s[staged] < took_s[staged]).all()


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"engine.name": "sglang", "engine.version": "0.5.23"}, "not simulated for sglang"),
        ({"engine.name": "trtllm", "engine.version": "1.4.0"}, "not simulated for trtllm"),
        ({"parallelism.pp": 40}, "pp 40 exceeds the 32 layers"),
        ({"llm": "qwen3-30b-a3b", "parallelism.dp": 2}, "pp 2 with dp 2"),
        (
            {"engine.version": "0.19.0", "policy.async_scheduling": True},
            "not simulated for vLLM 0.19.0",
        ),
    ],
)
def test_what_is_not_simulated_is_refused(overrides, says):
    with pytest.raises(InputError, match=says):
        scenario_from(SCENARIO, overrides={"parallelism.pp": 2, **overrides})


@pytest.mark.parametrize(
    ("llm", "version", "asynchronous"),
    [
        ("llama-3.1-8b", "0.24.0", False),
        ("llama-3.1-8b", "0.25.0", True),
        ("qwen3-30b-a3b", "0.28.0", False),
        ("qwen3-30b-a3b", "0.29.0", True),
    ],
)
def test_the_version_decides_whether_stages_are_scheduled_ahead(llm, version, asynchronous):
    overrides = {"llm": llm, "engine.version": version, "parallelism.pp": 2}
    assert scenario_from(SCENARIO, overrides=overrides).policy.async_scheduling is asynchronous
