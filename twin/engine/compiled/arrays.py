"""The arrays of compiled replicas: how they begin, and how they grow."""

import math
from typing import Any

import numpy as np

from hwmodels.host import HostCosts
from twin.engine.compiled import layout
from twin.engine.compiled.layout import COUNTERS, State
from twin.llm.step_time import StepTimer
from twin.scheduling.limits import SchedulerLimits

_ROWS, _BLOCKS = 1024, 65536  # where logs and block tables begin


def most_running(limits: SchedulerLimits) -> int:
    """Return how many requests can run at once: each holds a block that no other does."""
    return min(limits.max_num_seqs, limits.num_gpu_blocks - 1)


def most_tokens(limits: SchedulerLimits) -> int:
    """Return how many tokens a step can compute: each gets a slot in a block."""
    slots = (limits.num_gpu_blocks - 1) * limits.block_size
    return min(limits.max_num_batched_tokens, slots)


def policy_row(limits: SchedulerLimits, timer: StepTimer, host: HostCosts) -> Any:
    """Return the policy, the host's costs and what the timer adds to a step as one row."""
    row = np.zeros(1, layout.POLICY)
    values: dict[str, float] = {
        "max_num_seqs": limits.max_num_seqs,
        "most_running": most_running(limits),
        "max_num_batched_tokens": limits.max_num_batched_tokens,
        "max_model_len": limits.max_model_len,
        "block_size": limits.block_size,
        "caching": limits.enable_prefix_caching,
        "chunked": limits.enable_chunked_prefill,
        "threshold": limits.long_prefill_token_threshold,
        "priority": limits.scheduling_policy == "priority",
        "reserve_full_isl": limits.scheduler_reserve_full_isl,
        "watermark_blocks": limits.watermark_blocks,
        "asynchronous": limits.async_scheduling,
        "usable_blocks": limits.num_gpu_blocks - 1,
        "schedule_s": host.schedule_s,
        "schedule_per_seq_s": host.schedule_per_seq_s,
        "update_s": host.update_s,
        "update_per_seq_s": host.update_per_seq_s,
        "wake_s": host.wake_s,
        "extra_s": timer.extra_s,
        "gap_s": timer.gap_s,
        "gap_per_seq_s": timer.gap_per_seq_s,
        "tail": timer.tail,
    }
    for name, value in values.items():
        row[name] = value
    return row


def fresh_state(limits: SchedulerLimits, policy: Any, replicas: int) -> State:
    """Return the arrays of replicas that have done nothing."""
    seqs, blocks, size = most_running(limits), limits.num_gpu_blocks, limits.block_size
    places = 1 << (2 * blocks - 1).bit_length() if limits.enable_prefix_caching else 1
    state = State(
        policy=policy,
        replica=np.zeros(replicas, layout.REPLICA),
        request=np.zeros(_ROWS, layout.REQUEST),
        block=np.zeros((replicas, blocks), layout.BLOCK),
        hash=np.zeros((replicas, places), layout.SLOT),
        running=np.zeros((replicas, seqs + 1), dtype=np.int64),
        plan=np.zeros((replicas, 2, seqs + 1), layout.ENTRY),
        flight=np.zeros((replicas, 2), layout.FLIGHT),
        by_source=np.zeros((replicas, 4)),
        table_block=np.zeros(_BLOCKS, dtype=np.int32),
        table_key=np.zeros(_BLOCKS, dtype=np.int64),
        segment_id=np.zeros(_ROWS, dtype=np.int64),
        segment_end=np.zeros(_ROWS, dtype=np.int64),
        step=np.zeros(4 * _ROWS, layout.STEP),
        run=np.zeros(_ROWS, layout.RUN),
        taken=np.zeros(16 * _ROWS, dtype=np.int32),
        gap=np.zeros(16 * _ROWS, layout.GAP),
        ended=np.zeros(_ROWS, dtype=np.int64),
        counter=np.zeros(COUNTERS, dtype=np.int64),
        scratch=np.zeros(seqs + 1, dtype=np.int64),
        split=np.zeros(9),
        bucket=np.zeros((size, 2), dtype=np.int32),
        event=np.zeros((2 * seqs + 2, 2), dtype=np.int64),
    )
    state.request[:] = ABSENT
    return state


def doubled(state: State, name: str) -> Any:
    """Return an array with as many rows of zeros after its own."""
    array = getattr(state, name)
    return np.concatenate([array, np.zeros_like(array)])


def _absent() -> Any:
    """Return the row of a request that has not come."""
    row = np.zeros((), layout.REQUEST)
    for name in ("scheduled_s", "first_token_s", "last_token_s", "finish_s"):
        row[name] = math.nan
    row["cached_tokens"] = -1
    row["status"] = layout.ABSENT
    row["replica"] = row["before"] = row["after"] = -1
    return row


ABSENT = _absent()
"""The row of a request that has not come."""
