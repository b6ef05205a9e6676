"""How a scenario becomes an engine."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwmodels.host import host_costs_for
from hwmodels.measured import MeasuredCostModel
from hwmodels.roofline import RooflineCostModel
from hwmodels.scaled import Corrections
from twin.engine.engines import (
    SERVING_ENGINES,
    base_cost_model,
    engine_costs,
    front_end_event_s,
    serving_engine,
    sglang_limits,
    trtllm_limits,
    vllm_limits,
)
from twin.engine.run import simulate
from twin.errors import InputError
from twin.load.resolve import resolve_scenario
from twin.load.validation import validate
from twin.request import Request
from twin.scenario import ScenarioFile
from twin.scheduling import VllmV1Scheduler
from twin.scheduling.sglang import SglangScheduler
from twin.scheduling.trtllm import TrtllmScheduler


def scenario_of(engine="vllm", version=None, gpu="h100_sxm", tp=1, llm="llama-3.1-8b", **policy):
    file = ScenarioFile(
        schema_version=1,
        llm=llm,
        gpu=gpu,
        engine={"name": engine, **({"version": version} if version else {})},
        parallelism={"tp": tp},
        policy=policy,
        workload={
            "kind": "closed_loop",
            "concurrency": 4,
            "num_requests": 12,
            "prompt_tokens": 500,
            "output_tokens": 20,
        },
    )
    return resolve_scenario(file, Path(), where="test")


def test_every_engine_name_has_an_engine():
    kinds = {"vllm": VllmV1Scheduler, "sglang": SglangScheduler, "trtllm": TrtllmScheduler}
    assert set(SERVING_ENGINES) == set(kinds)
    for name, kind in kinds.items():
        scenario = scenario_of(name)
        assert isinstance(serving_engine(scenario).scheduler(scenario, lambda: 0.0), kind)


@pytest.mark.parametrize("engine", sorted(SERVING_ENGINES))
def test_every_engine_serves_all_requests(engine):
    requests = simulate(scenario_of(engine)).requests
    assert (requests.output_tokens == 20).all()
    assert (requests.first_token_s > requests.arrival_s).all()


def test_vllm_takes_its_own_spelling():
    limits = vllm_limits(scenario_of(max_num_seqs=7, max_num_batched_tokens=640, block_size=32))
    assert (limits.max_num_seqs, limits.max_num_batched_tokens, limits.block_size) == (7, 640, 32)
    assert limits.async_scheduling


def test_sglang_defaults_by_gpu():
    limits = sglang_limits(scenario_of("sglang", "0.5.23"))
    assert (limits.page_size, limits.chunked_prefill_size, limits.overlap) == (1, 8192, True)
    assert limits.max_prefill_tokens == 16384
    assert limits.disable_radix_cache is False
    pool, context = limits.max_total_num_tokens, limits.context_length
    by_pool = min(max(int(pool / context * 512), 2048), 4096)
    assert limits.max_running_requests == min(by_pool, pool // 2)
    assert sglang_limits(scenario_of("sglang", gpu="b200_sxm")).chunked_prefill_size == 16384
    assert sglang_limits(scenario_of("sglang", max_num_seqs=9)).max_running_requests == 9


def test_sglang_captures_by_gpu_and_tp():
    sizes = serving_engine(scenario_of("sglang")).capture_sizes
    assert sizes(scenario_of("sglang"))[:6] == (1, 2, 4, 8, 12, 16)
    assert sizes(scenario_of("sglang"))[-1] == 256
    assert sizes(scenario_of("sglang", tp=4))[-1] == 512
    assert sizes(scenario_of("sglang", max_num_seqs=50))[-1] == 50
    own = scenario_of("sglang", sglang={"cuda_graph_max_bs": 24})
    assert sizes(own) == (1, 2, 4, 8, 12, 16, 24)


def test_trtllm_defaults_and_own_knobs():
    limits = trtllm_limits(scenario_of("trtllm", "1.1.0"))
    assert (limits.max_batch_size, limits.max_num_tokens, limits.tokens_per_block) == (
        2048, 8192, 32,
    )  # fmt: skip
    assert (limits.stratum, limits.enable_chunked_prefill, limits.overlap) == ("early", False, True)
    assert trtllm_limits(scenario_of("trtllm", "1.4.0")).stratum == "main"
    wait = {"batch_wait_timeout_iters": 20, "batch_wait_max_tokens_ratio": 0.9}
    limits = trtllm_limits(scenario_of("trtllm", trtllm={**wait, "cuda_graph_padding": True}))
    assert (limits.batch_wait_timeout_iters, limits.batch_wait_max_tokens_ratio) == (20, 0.9)
    assert limits.cuda_graph_dummy_block


@pytest.mark.parametrize("engine", sorted(SERVING_ENGINES))
def test_admission_at_the_longest_request_and_beyond(engine):
    scenario = scenario_of(engine, max_model_len=1000)
    accepts = serving_engine(scenario).accepts(scenario)
    # SGLang clips the answer instead, but keeps a margin of 5 and one token for the prompt.
    longest = 993 if engine == "sglang" else 900
    assert accepts(Request(0, 0.0, longest, 100))
    assert not accepts(Request(0, 0.0, longest + 1, 100))


def test_an_unknown_knob_names_the_nearest():
    data = {
        "schema_version": 1,
        "llm": "llama-3.1-8b",
        "gpu": "h100_sxm",
        "policy": {"sglang": {"cuda_graph_max": 3}},
        "workload": {
            "kind": "closed_loop",
            "concurrency": 1,
            "num_requests": 1,
            "prompt_tokens": 1,
            "output_tokens": 1,
        },
    }
    with pytest.raises(InputError, match="cuda_graph_max_bs"):
        validate(ScenarioFile, data, "x")


def old_trtllm(**policy):
    """A version whose server is known to have one process for all tokens."""
    return scenario_of("trtllm", version="1.1.0", **policy)


def test_the_servers_process_counts_where_it_can_limit():
    host = replace(host_costs_for("trtllm"), front_end_event_s=1e-4)
    assert front_end_event_s(old_trtllm(), host) == 1e-4
    assert front_end_event_s(old_trtllm(trtllm={"stream_interval": 9}), host) == 1e-4
    assert front_end_event_s(old_trtllm(trtllm={"stream_interval": 10}), host) == 0.0
    workers = old_trtllm(trtllm={"num_postprocess_workers": 2})
    assert front_end_event_s(workers, host) == 0.0
    assert front_end_event_s(scenario_of("trtllm", version="1.2.0"), host) == 0.0


def test_a_slow_server_process_holds_tokens_back():
    scenario = old_trtllm()
    costs = engine_costs(scenario)
    slow = replace(costs, host=replace(costs.host, front_end_event_s=20e-3))
    free = replace(costs, host=replace(costs.host, front_end_event_s=0.0))
    held, direct = simulate(scenario, costs=slow), simulate(scenario, costs=free)
    tokens = held.requests.output_tokens.sum()
    assert tokens == direct.requests.output_tokens.sum() == 240
    assert held.requests.finish_s.max() >= tokens * 20e-3 > direct.requests.finish_s.max()
    assert held.itl_s.size == direct.itl_s.size == tokens - 12
    assert (np.asarray(held.itl_s) >= 0).all()


def test_long_intervals_bring_tokens_together():
    scenario = old_trtllm(trtllm={"stream_interval": 5})
    costs = engine_costs(scenario)
    host = replace(costs.host, front_end_event_s=1e-4)
    result = simulate(scenario, costs=replace(costs, host=host))
    assert (result.requests.output_tokens == 20).all()
    # Responses carry token 1, 5, 10, 15 and 20: 15 of 19 gaps are none.
    assert np.count_nonzero(result.itl_s == 0.0) == 12 * 15


def test_corrections_apply_to_measured_tables_alone():
    measured, roofline = (
        scenario_of("trtllm"),
        scenario_of("trtllm", gpu="l40s", max_model_len=4096),
    )
    assert isinstance(base_cost_model(measured), MeasuredCostModel)
    assert isinstance(base_cost_model(roofline), RooflineCostModel)
    assert engine_costs(roofline).cost_model.corrections == Corrections()


def test_block_scaled_experts_have_their_own_kernels():
    model = base_cost_model(scenario_of(gpu="h200_sxm", tp=8, llm="deepseek-v3"))
    assert model.experts._fp8_kernel == "fp8_block"
    assert base_cost_model(scenario_of()).experts._fp8_kernel == "fp8"
