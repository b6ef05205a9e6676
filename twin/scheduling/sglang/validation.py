"""What `SglangLimits` must satisfy; SGLang itself checks hardly any of it."""

import math
from typing import TYPE_CHECKING

from twin.errors import InputError
from twin.naming import remedy_for

if TYPE_CHECKING:
    from twin.scheduling.sglang.limits import SglangLimits

SCHEDULE_POLICIES = (
    "fcfs",
    "lpm",
    "dfs-weight",
    "lof",
    "hrrn",
    "shortest-prefill-first",
    "random",
    "routing-key",
)
EVICTION_POLICIES = ("lru", "lfu", "slru", "priority", "tlru")
RETRACTION_POLICIES = ("length", "priority")

_AT_LEAST = {
    "max_total_num_tokens": 2,
    "context_length": 2,
    "max_running_requests": 1,
    "page_size": 1,
    "max_prefill_tokens": 1,
    "priority_scheduling_preemption_threshold": 0,
    "new_token_ratio_decay_steps": 1,
    "retract_decode_steps": 0,
    "clip_max_new_tokens_estimation": 1,
    "tlru_threshold": 0,
    "tlru_next_prompt_estimate": 0,
    "in_batch_deprioritize_threshold": 1,
    "radix_key_tokens": 0,
}


def check_limits(limits: "SglangLimits") -> None:
    """Refuse values with which the scheduler could not run.

    Raises:
        InputError: naming the value and what would be right.
    """
    for name, least in _AT_LEAST.items():
        _at_least(name, getattr(limits, name), least)
    for name in ("prefill_max_requests", "request_rows"):
        value = getattr(limits, name)
        if value is not None:
            _at_least(name, value, 1)
    for name in ("schedule_conservativeness", "init_new_token_ratio", "min_new_token_ratio_factor"):
        value = getattr(limits, name)
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name} is {value}", remedy="give a number, 0 or more")
    _check_choices(limits)
    _check_pages(limits)


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"{name} is {value}", remedy=f"give at least {least}")


def _check_choices(limits: "SglangLimits") -> None:
    if limits.schedule_policy == "priority":
        raise InputError(
            "schedule_policy 'priority' passes SGLang's parser, but its scheduler dies of it",
            remedy="give fcfs and enable_priority_scheduling",
        )
    choices = {
        "schedule_policy": SCHEDULE_POLICIES,
        "radix_eviction_policy": EVICTION_POLICIES,
        "retraction_policy": RETRACTION_POLICIES,
    }
    for name, known in choices.items():
        value = getattr(limits, name)
        if value not in known:
            raise InputError(f"unknown {name} {value!r}", remedy=remedy_for(value, known))
    if limits.schedule_policy == "shortest-prefill-first" and limits.disable_radix_cache:
        raise InputError(
            "schedule_policy 'shortest-prefill-first' needs the radix cache",
            remedy="leave disable_radix_cache off, or give fcfs",
        )
    estimate = limits.tlru_next_prompt_estimate
    if limits.radix_eviction_policy == "tlru" and limits.tlru_threshold <= estimate:
        raise InputError(
            f"tlru_threshold {limits.tlru_threshold} is not above tlru_next_prompt_estimate "
            f"{estimate}, which makes tlru plain lru",
            remedy="raise the threshold, or give lru",
        )


def _check_pages(limits: "SglangLimits") -> None:
    page, chunk, key = limits.page_size, limits.chunked_prefill_size, limits.radix_key_tokens
    if limits.max_total_num_tokens < 2 * page:
        raise InputError(
            f"max_total_num_tokens {limits.max_total_num_tokens} holds fewer than two pages "
            f"of {page} tokens",
            remedy="give a larger pool or smaller pages",
        )
    if chunk > 0 and chunk % page:
        raise InputError(
            f"chunked_prefill_size {chunk} is not a multiple of page_size {page}",
            remedy=f"give {max(1, chunk // page) * page}, or -1 for whole prompts",
        )
    if key % page:
        raise InputError(
            f"radix_key_tokens {key} is not a multiple of page_size {page}",
            remedy=f"give {-(-key // page) * page}, or 0 for a page",
        )
