"""The closed form takes the same steps at the same instants as the reference engine."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibrate.accuracy.closed_loop import ClosedLoop
from calibrate.accuracy.policies import ample_policy, holds_all_clients
from twin.engine.engines import engine_costs, step_timer
from twin.engine.run import simulate
from twin.load.resolve import resolve_scenario
from twin.scenario import ScenarioFile
from twin.workload.closed_loop import ClosedLoopSource

VERSIONS = {"vllm": "0.16.0", "sglang": "0.5.23", "trtllm": "1.2.0"}


def scenario_of(engine, clients=6, requests=40, prompt=900, answer=60, **more):
    policy = {
        "max_num_seqs": more.pop("places", clients),
        "max_num_batched_tokens": more.pop("budget", 8192),
        "enable_prefix_caching": False,
        "async_scheduling": more.pop("ahead", True),
        "max_model_len": 20_000,
        **more.pop("policy", {}),
    }
    file = ScenarioFile(
        schema_version=1,
        llm="llama-3.1-8b",
        gpu=more.pop("gpu", "h200_sxm"),
        engine={"name": engine, "version": VERSIONS[engine]},
        policy=policy,
        workload={
            "kind": "closed_loop",
            "concurrency": clients,
            "num_requests": requests,
            "prompt_tokens": prompt,
            "output_tokens": answer,
            "think_time_s": more.pop("turnaround_s", 0.003),
        },
        seed=more.pop("seed", 0),
    )
    assert not more
    return resolve_scenario(file, Path(), where="test")


def lengths_of(scenario):
    source = scenario.workload.source(np.random.SeedSequence(scenario.file.seed), 20_000)
    assert isinstance(source, ClosedLoopSource)
    return source.prompt_tokens, source.max_tokens


def costs_of(scenario):
    """The engine's costs, with a server process that never limits: the closed form places the
    last tokens of a step in the middle of it."""
    costs = engine_costs(scenario)
    return replace(costs, host=replace(costs.host, front_end_event_s=0.0))


def closed_form(scenario):
    lengths, costs = lengths_of(scenario), costs_of(scenario)
    spec = scenario.file.workload
    policy = ample_policy(scenario, lengths, spec.concurrency)
    assert policy is not None
    timer = step_timer(scenario, costs)
    return ClosedLoop(
        policy, timer, costs.host, lengths[1], spec.concurrency, spec.think_time_s
    ).run()


def assert_equal(scenario):
    times, requests = closed_form(scenario), simulate(scenario, costs=costs_of(scenario)).requests
    np.testing.assert_array_equal(times.arrival_s, requests.arrival_s)
    np.testing.assert_array_equal(times.first_token_s, requests.first_token_s)
    np.testing.assert_array_equal(times.finish_s, requests.finish_s)
    np.testing.assert_array_equal(times.output_tokens, requests.output_tokens)


@pytest.mark.parametrize("engine", sorted(VERSIONS))
@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("exact", [True, False])
def test_equals_the_reference_engine(engine, ahead, exact):
    prompt = 700 if exact else {"kind": "uniform", "low": 3, "high": 1500}
    answer = 50 if exact else {"kind": "uniform", "low": 1, "high": 90}
    assert_equal(scenario_of(engine, prompt=prompt, answer=answer, ahead=ahead))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("engine", sorted(VERSIONS))
def test_equals_it_on_random_loads(engine, seed):
    rng = np.random.default_rng(seed)
    clients = int(rng.integers(1, 16))
    assert_equal(
        scenario_of(
            engine,
            clients=clients,
            requests=int(rng.integers(1, 50)),
            prompt={"kind": "uniform", "low": 1, "high": int(rng.integers(2, 3000))},
            answer={"kind": "uniform", "low": 1, "high": int(rng.integers(2, 120))},
            budget=int(rng.choice([3100, 8192] if engine == "trtllm" else [64, 700, 8192])),
            ahead=bool(rng.integers(2)),
            turnaround_s=float(rng.choice([0.0, 0.004, 0.06])),
            seed=seed,
        )
    )


def test_equals_it_under_batch_wait():
    wait = {"batch_wait_timeout_iters": 7, "batch_wait_max_tokens_ratio": 0.5}
    answer = {"kind": "uniform", "low": 30, "high": 90}
    assert_equal(scenario_of("trtllm", answer=answer, policy={"trtllm": wait}))


@pytest.mark.parametrize("engine", ["vllm", "trtllm"])
def test_equals_it_with_fewer_places_than_clients(engine):
    assert_equal(scenario_of(engine, clients=7, places=5))


def test_batch_wait_and_places_matter():
    answer = {"kind": "uniform", "low": 30, "high": 90}
    calm = closed_form(scenario_of("trtllm", answer=answer))
    wait = {"batch_wait_timeout_iters": 15, "batch_wait_max_tokens_ratio": 0.9}
    held = closed_form(scenario_of("trtllm", answer=answer, policy={"trtllm": wait}))
    assert held.ttft_s > 1.5 * calm.ttft_s
    assert closed_form(scenario_of("trtllm", answer=answer, places=5)).ttft_s > 1.5 * calm.ttft_s


def test_scarce_kv_is_left_to_the_reference_engine():
    # 6 clients of 960 tokens at most, 60 blocks of 16 each, one more for safety, the null block.
    for blocks, ample in ((7 * 60 + 1, True), (7 * 60, False)):
        scenario = scenario_of("vllm", policy={"num_gpu_blocks": blocks, "max_model_len": 2000})
        lengths = lengths_of(scenario)
        assert holds_all_clients(scenario, lengths, 6) is ample
        assert (ample_policy(scenario, lengths, 6) is not None) is ample


def test_the_servers_process_delays_and_then_limits():
    scenario = scenario_of("trtllm", clients=16, requests=80, answer=100)
    lengths, costs = lengths_of(scenario), engine_costs(scenario)
    found = []
    for event_s in (0.0, 20e-6, 2e-3):
        host = type(costs.host)(
            **{
                **{name: getattr(costs.host, name) for name in costs.host.__slots__},
                "front_end_event_s": event_s,
            }
        )
        policy = ample_policy(scenario, lengths, 16)
        timer = step_timer(scenario, costs)
        found.append(ClosedLoop(policy, timer, host, lengths[1], 16, 0.003).run())
    free, light, heavy = found
    assert free.tpot_s <= light.tpot_s < 1.1 * free.tpot_s
    assert heavy.front_end_share > 0.9
    # A single server of 2 ms a token: the whole run takes at least that for all tokens.
    assert heavy.finish_s.max() >= sum(lengths[1]) * 2e-3
