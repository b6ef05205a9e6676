"""From a scenario to the scheduler of `ClosedLoop`, if its KV cache is ample."""

from collections.abc import Callable, Sequence

from calibrate.accuracy.closed_loop import Policy
from calibrate.accuracy.mixed_policy import MixedLimits, MixedPolicy
from calibrate.accuracy.prefill_first_policy import PrefillFirstLimits, PrefillFirstPolicy
from twin.engine.engines import sglang_limits, trtllm_limits, vllm_limits
from twin.scenario import Scenario

Lengths = tuple[Sequence[int], Sequence[int]]
"""Prompt and answer tokens by request."""


def ample_policy(scenario: Scenario, lengths: Lengths, concurrency: int) -> Policy | None:
    """Return the scheduler for a load under which KV never runs short; None: it may.

    Ample means that as many requests as there are clients fit at their longest, all at once.
    `ClosedLoop` knows no pipeline of stages.
    """
    if not holds_all_clients(scenario, lengths, concurrency):
        return None
    if scenario.file.parallelism.pp > 1:
        return None
    if scenario.file.engine.name == "sglang" and scenario.policy.max_num_seqs < concurrency:
        return None
    return _POLICIES[scenario.file.engine.name](scenario, lengths)


def holds_all_clients(scenario: Scenario, lengths: Lengths, concurrency: int) -> bool:
    """Whether the KV cache holds all clients' requests at once, whatever their lengths."""
    size = scenario.policy.block_size
    blocks = -(-(max(lengths[0]) + max(lengths[1])) // size)
    usable = scenario.num_gpu_blocks - 1
    return blocks * (concurrency + 1) <= usable


def _vllm(scenario: Scenario, lengths: Lengths) -> Policy | None:
    limits = vllm_limits(scenario)
    if not limits.enable_chunked_prefill or limits.long_prefill_token_threshold:
        return None
    mixed = MixedLimits(limits.max_num_batched_tokens, limits.max_num_seqs, limits.async_scheduling)
    return MixedPolicy(*lengths, mixed)


def _trtllm(scenario: Scenario, lengths: Lengths) -> Policy | None:
    limits = trtllm_limits(scenario)
    if limits.enable_chunked_prefill:
        return None
    return MixedPolicy(
        *lengths,
        MixedLimits(
            limits.max_num_tokens,
            limits.max_batch_size,
            limits.overlap,
            chunked=False,
            launches_empty=False,
            wait_iters=limits.batch_wait_timeout_iters,
            wait_tokens=limits.batch_wait_max_tokens_ratio * limits.max_num_tokens,
        ),
    )


def _sglang(scenario: Scenario, lengths: Lengths) -> Policy | None:
    limits = sglang_limits(scenario)
    if limits.chunked_prefill_size <= 0 or limits.enable_mixed_chunk or limits.page_size > 1:
        return None
    return PrefillFirstPolicy(
        *lengths,
        PrefillFirstLimits(limits.chunked_prefill_size, limits.max_prefill_tokens, limits.overlap),
    )


_POLICIES: dict[str, Callable[[Scenario, Lengths], Policy | None]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "trtllm": _trtllm,
}
