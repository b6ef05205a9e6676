"""The prefill pass: budgets, slots, chunks, priorities."""

from collections.abc import Callable
from typing import Any

import pytest

from twin.errors import InputError

Make = Callable[..., Any]


def test_a_prompt_is_computed_in_chunks_and_nobody_passes_it(engine: Make) -> None:
    e = engine()
    e.add(250)
    e.add(30)
    assert e.prefills(e.turn()) == [(0, 0, 100)]
    assert e.core.chunked is not None
    assert e.prefills(e.turn()) == [(0, 100, 100)]
    assert e.cache.tree.protected == 100  # a chunk is in the tree at the next decision
    assert e.prefills(e.turn()) == [(0, 200, 50), (1, 0, 30)]
    assert e.core.chunked is None
    assert e.decodes(e.turn()) == [0, 1]


def test_chunks_end_at_a_page_but_a_continued_one_need_not(engine: Make) -> None:
    e = engine(page_size=10, chunked_prefill_size=100)
    e.add(45)
    e.add(95)
    assert e.prefills(e.turn()) == [(0, 0, 45), (1, 0, 50)]
    assert e.prefills(e.turn()) == [(1, 50, 45)]


def test_without_chunks_a_first_prompt_may_exceed_the_input_budget(engine: Make) -> None:
    e = engine(chunked_prefill_size=-1, max_prefill_tokens=100)
    e.add(150)
    e.add(10)
    e.add(99)
    e.add(20)
    assert e.prefills(e.turn()) == [(0, 0, 150)]
    # 99 tokens are not less than the 90 that are left.
    assert e.prefills(e.turn()) == [(1, 0, 10)]
    assert e.prefills(e.turn()) == [(2, 0, 99)]
    assert e.prefills(e.turn()) == [(3, 0, 20)]


def test_admission_leaves_room_for_foreseen_output(engine: Make) -> None:
    e = engine(max_total_num_tokens=200, schedule_conservativeness=1.0)
    e.add(50, max_tokens=60)
    e.add(50, max_tokens=37)
    # 200 - (50 + 1 + 60) = 89 > 50 + 37 + 1 (strictly)
    assert len(e.prefills(e.turn())) == 2
    e = engine(max_total_num_tokens=200, schedule_conservativeness=1.0)
    e.add(50, max_tokens=60)
    e.add(50, max_tokens=38)
    assert e.prefills(e.turn()) == [(0, 0, 50)]
    assert e.core.full


def test_running_output_is_scaled_by_the_ratio_unless_eos_is_ignored(engine: Make) -> None:
    for ignore_eos, admitted in ((False, 1), (True, 0)):
        e = engine(max_total_num_tokens=200)
        e.add(50, max_tokens=60, ignore_eos=ignore_eos)
        e.turn()
        e.add(50, max_tokens=45)
        # 200 - 50 - 59 x 0.7 = 108.7 or 200 - 50 - 59 = 91 against 50 + 45 + 1
        assert len(e.prefills(e.turn())) == admitted


def test_a_full_batch_tries_nobody_until_someone_leaves(engine: Make) -> None:
    e = engine(max_running_requests=1)
    e.add(20, max_tokens=3)
    e.turn()
    e.add(20)
    assert e.decodes(e.turn()) == [0]
    assert e.core.full
    assert e.decodes(e.turn()) == [0]
    assert e.prefills(e.turn()) == [(1, 0, 20)]
    assert not e.core.full


def test_request_rows_limit_the_batch_too(engine: Make) -> None:
    e = engine(max_running_requests=8, request_rows=2)
    for _ in range(4):
        e.add(20, max_tokens=5)
    assert e.prefills(e.turn()) == [(0, 0, 20), (1, 0, 20)]
    assert e.cache.rows_free == 0
    assert e.decodes(e.turn()) == [0, 1]
    assert e.core.full
    e.turns(3)
    assert e.cache.rows_free == 2
    assert e.prefills(e.turn()) == [(2, 0, 20), (3, 0, 20)]


def test_a_continued_prompt_keeps_its_row(engine: Make) -> None:
    e = engine(max_running_requests=8, request_rows=2)
    e.add(150)
    e.add(20)
    e.add(20)
    assert e.prefills(e.turn()) == [(0, 0, 100)]
    assert e.prefills(e.turn()) == [(0, 100, 50), (1, 0, 20)]
    assert e.cache.rows_free == 0
    assert e.waiting == [2]


def test_under_overlap_a_row_is_held_until_the_result_is_processed(engine: Make) -> None:
    e = engine(overlap=True, max_running_requests=8, request_rows=1)
    e.add(20, max_tokens=1)
    e.add(20)
    e.turn()
    # Its only token is on its way: it does not decode, and its row is not free.
    assert e.turn() is None
    assert e.cache.rows_free == 1
    assert e.prefills(e.turn()) == [(1, 0, 20)]


def test_prefill_max_requests(engine: Make) -> None:
    e = engine(prefill_max_requests=2)
    for _ in range(3):
        e.add(10)
    assert len(e.prefills(e.turn())) == 2
    assert len(e.prefills(e.turn())) == 1


def test_known_lengths_without_a_cache_are_simulated_to_their_ends(engine: Make) -> None:
    def admitted(second: int) -> int:
        e = engine(disable_radix_cache=True, max_total_num_tokens=200)
        e.add(50, max_tokens=20, ignore_eos=True)
        e.add(50, max_tokens=second, ignore_eos=True)
        return len(e.prefills(e.turn()))

    # 98 tokens are left after the second. SGLang enters it before the first, though it ends
    # later, and lets both live until then: 98 - 47 x 2 > 2, but not 98 - 48 x 2 > 2.
    assert admitted(47) == 2
    assert admitted(48) == 1
    # One that ends sooner stands before it rightly: 98 - 10 x 2 > 2 and 148 - 20 > 1.
    assert admitted(10) == 2


def test_a_more_urgent_request_takes_a_slot(engine: Make) -> None:
    e = engine(max_running_requests=2, enable_priority_scheduling=True)
    e.add(20, priority=30)
    e.add(20, priority=40)
    e.turn()
    e.add(20, priority=29)  # 11 more urgent than the least urgent: above the threshold of 10
    launch = e.turn()
    assert e.prefills(launch) == [(2, 0, 20)]
    assert e.waiting == [1]
    assert e.states[1].preemptions == 1
    assert e.running == [0]


def test_a_slightly_more_urgent_request_waits(engine: Make) -> None:
    e = engine(max_running_requests=2, enable_priority_scheduling=True)
    e.add(20, priority=30)
    e.add(20, priority=40)
    e.turn()
    e.add(20, priority=30)
    assert e.decodes(e.turn()) == [0, 1]
    e = engine(
        max_running_requests=2, enable_priority_scheduling=True, disable_priority_preemption=True
    )
    e.add(20, priority=30)
    e.add(20, priority=40)
    e.turn()
    e.add(20, priority=0)
    assert e.decodes(e.turn()) == [0, 1]


def test_a_continued_prompt_takes_what_is_left(engine: Make) -> None:
    e = engine()
    e.add(150)
    e.turn()
    e.cache.free = 30
    assert e.prefills(e.turn()) == [(0, 100, 30)]
    assert e.core.chunked is not None


def test_running_out_of_memory_in_a_prefill_is_one_line(engine: Make) -> None:
    e = engine()
    e.add(150)
    e.turn()
    e.cache.free = 0  # somebody took what the rest of the prompt needs
    with pytest.raises(InputError, match="a prefill needs 50 KV tokens and only 0 can be had"):
        e.turn()


def test_hits_are_counted_apart_after_a_retraction(engine: Make) -> None:
    e = engine(retract_decode_steps=0)
    e.add(40, shared=(1, 30))
    e.turns(2)
    e.add(50, shared=(1, 30))
    assert e.prefills(e.turn()) == [(1, 30, 20)]
    prefix = e.scheduler.prefix
    assert (prefix.requests, prefix.queries, prefix.hits) == (2, 90, 30)
    e.turn()
    e.cache.free = 1
    e.turn()
    e.cache.free = 500
    e.states[0].output_limit = 1
    while e.waiting:
        e.turn()
    assert (prefix.preempted_requests, prefix.requests) == (1, 2)
    assert prefix.preempted_hits == 50
    assert e.states[1].cached_tokens == 30
