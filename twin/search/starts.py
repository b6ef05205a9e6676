"""Candidates that a search tries before it samples: known-good points of each engine."""

from collections.abc import Sequence

from twin.search.domains import values_of
from twin.search.knob import Candidate, Knob
from twin.search.narrow import Ground

_EIGHT_BITS: tuple[Candidate, ...] = (
    # Half the bytes of all that decoding reads, where the limits allow it.
    {"policy.kv_cache_dtype": "fp8"},
    {"policy.quantization": "fp8"},
)

KNOWN_GOOD: dict[str, tuple[Candidate, ...]] = {
    # docs.vllm.ai, Optimization and Tuning: budgets around 2048 for short gaps between tokens,
    # above 8192 for short times to first token and throughput; against preemptions more GPU
    # memory, fewer sequences.
    "vllm": (
        {"policy.max_num_batched_tokens": 2048},
        {"policy.max_num_batched_tokens": 16384},
        {"policy.gpu_memory_utilization": 0.95},
        {"policy.max_num_seqs": 256},
        *_EIGHT_BITS,
    ),
    # docs.sglang.io, Hyperparameter Tuning: conservativeness 0.3 while requests wait and tokens
    # are free, smaller chunks to spare memory, lpm where prompts share prefixes.
    "sglang": (
        {"policy.sglang.schedule_conservativeness": 0.3},
        {"policy.max_num_batched_tokens": 4096},
        {"policy.sglang.schedule_policy": "lpm"},
        *_EIGHT_BITS,
    ),
    # TensorRT-LLM, Performance Tuning Guide: Useful Runtime Options, and Tuning Max Batch Size
    # and Max Num Tokens.
    "trtllm": (
        {"policy.trtllm.capacity_scheduler_policy": "MAX_UTILIZATION"},
        {"policy.trtllm.enable_chunked_prefill": True},
        {"policy.trtllm.cuda_graph_padding": True},
        {"policy.max_num_batched_tokens": 16384},
        *_EIGHT_BITS,
    ),
}
"""By engine: what its own tuning guide recommends to try."""


def starts_for(knobs: Sequence[Knob], ground: Ground) -> tuple[Candidate, ...]:
    """Return the scenario as it is, then the points that a problem's knobs can express.

    With more GPUs than the scenario takes, all of them as replicas and all of them as ranks of
    one replica are among them.

    Args:
        knobs: narrowed to the problem.
        ground: what it stands on.
    """
    values = {knob.key: values_of(knob.domain) for knob in knobs}
    most = ground.limits.gpus
    whole: tuple[Candidate, ...] = ({"cluster.replicas": most}, {"parallelism.tp": most})
    found: list[Candidate] = [{}]
    for point in (*whole, *KNOWN_GOOD[ground.file.engine.name]):
        possible = all(
            value in values.get(key, ()) and value != ground.default(key)
            for key, value in point.items()
        )
        if possible:
            found.append(point)
    return tuple(found)
