"""A step without CUDA graphs takes no less than the same step with them, whatever its shape."""

import random

import pytest

from twin.engine.engines import engine_costs, step_timer
from twin.load import scenario_from
from twin.step import BatchShape

DEPLOYMENTS = {
    "vllm": {},
    "piecewise": {"policy": {"cudagraph_mode": "piecewise", "max_cudagraph_capture_size": 128}},
    "large graphs": {"policy": {"max_cudagraph_capture_size": 1024, "max_num_seqs": 1024}},
    "roofline": {"gpu": "l40s"},
    "slow host": {"gpu": "a100_sxm", "llm": "qwen3-8b"},
    "ranks": {"llm": "qwen3-32b", "parallelism": {"tp": 4}},
    "experts": {"llm": "qwen3-30b-a3b"},
    "sglang": {"engine": {"name": "sglang"}},
    "trtllm": {"engine": {"name": "trtllm"}},
    "padded": {"engine": {"name": "trtllm"}, "policy": {"trtllm": {"cuda_graph_padding": True}}},
    "few rows, many padded": {
        "engine": {"name": "trtllm"}, "gpu": "l40s",
        "policy": {"trtllm": {"cuda_graph_padding": True, "cuda_graph_max_batch_size": 512}},
    },
}  # fmt: skip


def timers(name):
    """Return the timers of a deployment with and without CUDA graphs."""
    found = []
    for eager in (False, True):
        data = {
            "schema_version": 1, "llm": "llama-3.1-8b", "gpu": "h100_sxm",
            "workload": {"kind": "closed_loop", "concurrency": 1, "num_requests": 1,
                         "prompt_tokens": 8, "output_tokens": 8},
            **DEPLOYMENTS[name],
        }  # fmt: skip
        policy = {"max_model_len": 4096, **data.get("policy", {}), "enforce_eager": eager}
        scenario = scenario_from({**data, "policy": policy})
        found.append(step_timer(scenario, engine_costs(scenario)))
    return found


def shapes(seed):
    """Yield decodes alone, chunks alone and both, small ones about the captured sizes and large."""
    rng = random.Random(seed)
    for _ in range(250):
        seqs = rng.choice((0, 1, rng.randint(1, 40), rng.randint(1, 1100)))
        context = int(2 ** rng.uniform(0, 12))
        chunks = []
        for _ in range(rng.choice((0, 0, 1, 3)) if seqs else 1):
            query = int(2 ** rng.uniform(1, 12))
            chunks.append((query, query + rng.choice((0, rng.randint(1, 3000)))))
        yield BatchShape(tuple(chunks), seqs, seqs * context, context, seqs + len(chunks), context)


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_no_step_is_cheaper_without_graphs(name):
    graphs, eager = timers(name)
    for shape in shapes(len(name)):
        assert eager.time(shape).seconds >= graphs.time(shape).seconds, shape


def test_runs_of_decodes_neither():
    graphs, eager = timers("vllm")
    for seqs in (1, 9, 64, 257, 513):
        shape = BatchShape((), seqs, seqs * 300, 300, seqs, 300)
        assert (
            eager.decode_run(shape, 2000).seconds >= graphs.decode_run(shape, 2000).seconds
        ).all()
