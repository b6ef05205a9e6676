"""`waits`: what requests wait for, as shares of the time."""

import numpy as np

from twin.engine.engines import sglang_limits
from twin.engine.result import Ints, SimulationResult
from twin.load.trtllm_notes import reserved_batch
from twin.report.cluster import core_seconds
from twin.report.occupancy import hold_seconds, serving_span
from twin.scenario import Scenario, pools_of

KV_FULL = 0.9
"""Share of KV blocks in use from which on a prompt that is not admitted lacks blocks."""

SEATS, BUDGET, KV = "max_num_seqs", "token_budget", "kv"
REASONS = (SEATS, BUDGET, KV)
"""Why a request waits though a step runs: no seat is free, the step is full, blocks are short."""


def waits(scenario: Scenario, result: SimulationResult) -> dict[str, float]:
    """Return by reason the share of serving time in which requests wait for it.

    A step with waiting requests has one reason, in the order of `REASONS`: as many requests run as
    may; it computes as many tokens as may be in a step; its blocks are nearly all in use, or
    reserved for answers that nobody limits (TensorRT-LLM). What is left (a scheduler that spreads
    admissions out, a step already decided) is not told.
    """
    steps = result.steps
    total_s = core_seconds(result, serving_span(result))
    if not len(steps) or not total_s > 0:
        return dict.fromkeys(REASONS, 0.0)
    hold = hold_seconds(result, serving_span(result))
    core = steps.replica
    waiting = steps.waiting > 0
    seats, budgets, reserved = (limits[core] for limits in _limits(scenario, result))
    full = steps.prefill_tokens + steps.decode_tokens >= budgets
    used = steps.used_blocks >= KV_FULL * result.usable_of_core[core]
    used |= steps.running >= reserved
    reasons = np.select([~waiting, steps.running >= seats, full, used], [-1, 0, 1, 2], -1)
    return {
        reason: min(1.0, float(hold[reasons == index].sum()) / total_s)
        for index, reason in enumerate(REASONS)
    }


def seats_of(scenario: Scenario) -> int:
    """Return how many requests an engine core may run at once."""
    if scenario.file.engine.name == "sglang":
        return sglang_limits(scenario).max_running_requests  # fewer where the pool is small
    return scenario.policy.max_num_seqs


def _limits(scenario: Scenario, result: SimulationResult) -> tuple[Ints, Ints, Ints]:
    """Return (most requests, most tokens a step, requests that reserve all KV) of each core."""
    pools = [pool.scenario for pool in pools_of(scenario)]
    of_core = result.pool_of_core
    seats = np.array([seats_of(pool) for pool in pools], dtype=np.int64)
    budgets = np.array([pool.policy.max_num_batched_tokens for pool in pools], dtype=np.int64)
    reserved = np.array([_reserving(pool) for pool in pools], dtype=np.int64)
    return seats[of_core], budgets[of_core], reserved[of_core]


def _reserving(scenario: Scenario) -> int:
    """Return how many requests reserve all KV; where none is reserved, more than ever run."""
    blocks = scenario.num_gpu_blocks
    at_once = reserved_batch(scenario.file, scenario.policy, scenario.workload, blocks)
    return seats_of(scenario) + 1 if at_once is None else at_once
