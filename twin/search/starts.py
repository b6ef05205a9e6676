"""Candidates that a search tries before it samples: known-good points of each engine."""

from collections.abc import Sequence

from twin.search.knob import Candidate, Knob
from twin.search.narrow import Ground, values_of


def starts_for(knobs: Sequence[Knob], ground: Ground) -> tuple[Candidate, ...]:
    """Return the scenario as it is, then the points that a problem's knobs can express.

    Args:
        knobs: narrowed to the problem.
        ground: what it stands on.
    """
    values = {knob.key: values_of(knob.domain) for knob in knobs}
    found: list[Candidate] = [{}]
    for point in KNOWN_GOOD[ground.file.engine.name]:
        kept = {
            key: value
            for key, value in point.items()
            if value in values.get(key, ()) and value != ground.default(key)
        }
        if len(kept) == len(point) and kept not in found:
            found.append(kept)
    return tuple(found)


KNOWN_GOOD: dict[str, tuple[Candidate, ...]] = {
    "vllm": (
        # vLLM, "Optimization and tuning": a smaller budget for short gaps between tokens, more
        # than 8192 for short times to the first token and for throughput on large GPUs.
        {"policy.max_num_batched_tokens": 2048},
        {"policy.max_num_batched_tokens": 16384},
        {"policy.gpu_memory_utilization": 0.95},
        {"policy.max_num_seqs": 256},
    ),
    "sglang": (
        {"policy.max_num_batched_tokens": 4096},
        {"policy.sglang.schedule_policy": "lpm"},
        {"policy.sglang.schedule_conservativeness": 0.3},
    ),
    "trtllm": (
        {"policy.trtllm.enable_chunked_prefill": True},
        {"policy.trtllm.capacity_scheduler_policy": "MAX_UTILIZATION"},
        {"policy.trtllm.cuda_graph_padding": True},
    ),
}
"""By engine: what its own tuning guide recommends to try."""
