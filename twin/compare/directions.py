"""Which way each figure of a summary is better."""

from typing import Literal

Direction = Literal["lower", "higher", "neutral"]

DIRECTIONS: dict[str, Direction] = {
    "requests": "neutral",
    "finished": "higher",
    "rejected": "lower",
    "unfinished": "lower",
    "failed": "lower",
    "requeues": "lower",
    "warmup_requests": "neutral",
    "replicas": "neutral",
    "steps": "neutral",
    "simulated_s": "neutral",
    "gpu_s": "lower",
    "wall_s": "neutral",
    "ttft_s": "lower",
    "tpot_s": "lower",
    "itl_s": "lower",
    "e2e_s": "lower",
    "queue_s": "lower",
    "requests_per_s": "higher",
    "input_tokens_per_s": "higher",
    "output_tokens_per_s": "higher",
    "goodput_requests_per_s": "higher",
    "slo_attainment": "higher",
    "slo_met": "higher",
    "preemptions": "lower",
    "prefix_cache_hit_rate": "higher",
    "kv_blocks": "neutral",
    "block_size": "neutral",
    "kv_cache_usage": "neutral",
    "running": "neutral",
    "waiting": "lower",
    "gpu_busy_share": "neutral",
    "step_s": "neutral",
    "time_by_bound": "neutral",
    "time_by_source": "neutral",
    "queue_grows": "lower",
    "clients.requests": "neutral",
    "clients.succeeded": "higher",
    "clients": "lower",
}
"""By key of a summary; a figure inside (`ttft_s.p99`) has the direction of what it is in."""

# Not figures of the run: the objective's own limits, the layout's version, and lists of what
# happened, whose rows of two runs have nothing to do with each other.
NOT_FIGURES = ("schema_version", "slo", "cluster")


# Not settings: how the run was started, and what its workload implies.
NOT_INPUTS = ("command", "warmup_requests")


def direction_of(key: str) -> Direction:
    """Return the direction of a dotted figure key; a figure nobody registered is neutral."""
    if key in DIRECTIONS:
        return DIRECTIONS[key]
    return DIRECTIONS.get(key.partition(".")[0], "neutral")
