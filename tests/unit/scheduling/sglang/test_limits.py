"""What a server refuses, and what intake clips."""

from typing import Any

import pytest

from twin.errors import InputError
from twin.request import Request
from twin.scheduling.sglang import SglangLimits

GOOD: dict[str, Any] = {
    "max_total_num_tokens": 1000,
    "context_length": 400,
    "max_running_requests": 16,
}


def limits(**changes: Any) -> SglangLimits:
    return SglangLimits(**{**GOOD, **changes})


def request(prompt: int, most: int, **fields: Any) -> Request:
    return Request(index=0, arrival_s=0.0, prompt_tokens=prompt, max_tokens=most, **fields)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"page_size": 0}, "page_size is 0"),
    ({"max_running_requests": 0}, "max_running_requests is 0"),
    ({"max_total_num_tokens": 31, "page_size": 16}, "fewer than two pages of 16 tokens"),
    ({"page_size": 16, "chunked_prefill_size": 100}, "not a multiple of page_size 16; give 96"),
    ({"page_size": 16, "radix_key_tokens": 24}, "not a multiple of page_size 16; give 32"),
    ({"schedule_policy": "priority"}, "its scheduler dies of it"),
    ({"schedule_policy": "lpn"}, "unknown schedule_policy 'lpn'; did you mean 'lpm'?"),
    ({"radix_eviction_policy": "fifo"}, "unknown radix_eviction_policy 'fifo'; choose one of"),
    ({"retraction_policy": "len"}, "unknown retraction_policy 'len'"),
    ({"radix_eviction_policy": "tlru"}, "tlru_threshold 0 is not above"),
    ({"schedule_conservativeness": float("nan")}, "schedule_conservativeness is nan"),
    ({"schedule_conservativeness": -1.0}, "schedule_conservativeness is -1.0"),
    ({"prefill_max_requests": 0}, "prefill_max_requests is 0"),
    (
        {"schedule_policy": "shortest-prefill-first", "disable_radix_cache": True},
        "needs the radix cache",
    ),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[text for _, text in BAD])
def test_what_sglang_would_die_of_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        limits(**changes)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_intake_clips_the_answer_to_context_and_pool() -> None:
    assert limits().max_req_len == 399
    assert limits().max_new_tokens(request(100, 50)) == 50
    assert limits().max_new_tokens(request(100, 5000)) == 298
    assert limits(context_length=5000).max_new_tokens(request(100, 5000)) == 898
    # A page more than the prompt's own is kept out of it.
    paged = limits(context_length=5000, page_size=16)
    assert paged.pool_tokens == 992
    assert paged.max_new_tokens(request(100, 5000)) == 992 - 112 - 16 - 1


def test_what_can_never_be_served_is_refused() -> None:
    assert limits().fits(request(393, 1))
    assert not limits().fits(request(394, 1))
    paged = limits(context_length=5000, page_size=16)
    assert paged.fits(request(975, 5000))
    assert not paged.fits(request(976, 1))


def test_mixed_chunks_and_preemption_need_what_they_build_on() -> None:
    assert limits(enable_mixed_chunk=True).mixed
    assert not limits(enable_mixed_chunk=True, chunked_prefill_size=-1).mixed
    assert limits(enable_priority_scheduling=True).preempts
    assert not limits(enable_priority_scheduling=True, disable_priority_preemption=True).preempts


def test_priorities_turn_round_unless_low_values_go_first() -> None:
    assert limits().raw_priority(request(1, 1, priority=3)) == -3
    low = limits(schedule_low_priority_values_first=True)
    assert low.raw_priority(request(1, 1, priority=3)) == 3
