"""Contradictions are told in one line each."""

import pytest

from tests.unit.search.problems import problem
from twin.errors import InputError
from twin.search.feasibility import check
from twin.search.problem import Limits


@pytest.mark.parametrize(
    ("overrides", "more", "says"),
    [
        ({}, {"objectives": ()}, "no objective"),
        ({}, {"objectives": ("p99_tft_s",)}, "did you mean 'p99_ttft_s'"),
        ({}, {"objectives": ("p99_ttft_s", "p99_ttft_s")}, "named twice"),
        ({"slo": {}}, {}, "the scenario has none"),
        ({}, {"limits": Limits(gpus=0)}, "at least 1"),
        ({}, {"limits": Limits(gpus=1, max_kv_error=-0.1)}, "max_kv_error -0.1"),
        ({}, {"usd_per_gpu_hour": 0.0}, "price above 0"),
        ({}, {"search_share": 1.0}, "between 0 and 1"),
        ({}, {"knobs": ["policy.max_num_seq"]}, "did you mean 'policy.max_num_seqs'"),
        ({}, {"knobs": ["parallelism.tp"]}, "no knob is left"),
        ({"engine": {"name": "sglang"}}, {}, "set engine.name=vllm"),
        ({}, {"engine": "vlm"}, "did you mean 'vllm'"),
        ({"parallelism.tp": 2}, {}, "takes 2 GPUs, the budget is 1"),
        ({"cluster.replicas": 3}, {"limits": Limits(gpus=2)}, "takes 3 GPUs, the budget is 2"),
        ({"llm": "llama-3.1-70b"}, {}, "the budget is 1; raise the budget to"),
        ({"workload.prompt_tokens": 0}, {}, "prompt_tokens"),
    ],
)
def test_contradiction_is_one_line(overrides, more, says):
    with pytest.raises(InputError) as caught:
        problem(overrides, **more)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_network_that_fits_the_budget_when_cut_keeps_its_own_message():
    with pytest.raises(InputError, match=r"set parallelism\.tp to"):
        problem({"llm": "llama-3.1-70b"}, limits=Limits(gpus=8))


def test_starts_begin_with_the_scenario_and_can_all_be():
    found = problem(limits=Limits(gpus=4))
    assert found.starts[0] == {}
    assert {"cluster.replicas": 4} in found.starts
    assert {"parallelism.tp": 4} in found.starts
    assert all(check(found, start) is None for start in found.starts)
    assert len({tuple(start.items()) for start in found.starts}) == len(found.starts)


def test_start_at_a_default_is_not_tried_twice():
    found = problem({"policy.max_num_batched_tokens": 2048, "policy.max_num_seqs": 64})
    assert {"policy.max_num_batched_tokens": 2048} not in found.starts


def test_defaults_are_the_engine_own():
    found = problem()
    assert found.defaults["policy.max_num_seqs"] == 1024
    assert found.defaults["policy.max_num_batched_tokens"] == 8192
    assert found.defaults["policy.max_cudagraph_capture_size"] == 512
    assert problem(engine="sglang").defaults["policy.sglang.cuda_graph_max_bs"] == 256
