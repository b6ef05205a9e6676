"""Decoding: foreseen ends, skipped turns, retraction, mixed batches."""

import time
from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]


def test_what_ends_by_length_is_foreseen_under_overlap(engine: Make) -> None:
    e = engine(overlap=True)
    e.add(20, max_tokens=3)
    e.add(20, max_tokens=9)
    assert len(e.prefills(e.turn())) == 2
    assert e.decodes(e.turn()) == [0, 1]  # the prefill's token is not known yet
    assert e.decodes(e.turn()) == [0, 1]
    assert e.decodes(e.turn()) == [1]  # the result on its way brings the third token
    assert e.states[0].finish_reason == "length"


def test_a_stop_token_is_found_one_step_late_under_overlap(engine: Make) -> None:
    e = engine(overlap=True)
    e.add(20, max_tokens=9, stop_after_tokens=3)
    e.turns(3)
    assert e.decodes(e.turn()) == [0]  # computed in vain
    assert e.states[0].finish_reason == "stop"
    assert e.turn() is None
    assert e.outcome.discarded == [e.states[0]]
    assert e.states[0].num_output == 3
    # All three outputs are kept: the extra step has computed the last one's KV.
    assert e.cache.tree.evictable == 23


def test_without_overlap_the_last_token_is_never_computed(engine: Make) -> None:
    e = engine()
    e.add(20, max_tokens=9, stop_after_tokens=3)
    e.turns(4)
    assert e.cache.tree.evictable == 22
    assert e.cache.free == 1000 - 22


def test_a_decode_is_skipped_when_foreseen_ends_free_memory(engine: Make) -> None:
    # The pool is full at the decision at which request 0 has its last token on its way.
    e = engine(overlap=True, max_total_num_tokens=47, schedule_conservativeness=0.0)
    e.add(20, max_tokens=4)
    e.add(20, max_tokens=5)
    e.turns(5)  # a prefill each, then three decodes of both: 46 tokens
    assert e.cache.free == 1
    e.cache.free = 0  # somebody else took the last token
    assert e.turn() is None  # neither a decode nor a retraction
    assert e.running == [1]
    assert e.states[1].preemptions == 0
    assert not e.core.full
    assert e.states[0].finish_reason == "length"
    assert e.decodes(e.turn()) == [1]  # what request 0 had can be evicted now


def test_the_same_shortage_retracts_when_nobody_ends(engine: Make) -> None:
    e = engine(overlap=True, max_total_num_tokens=47, schedule_conservativeness=0.0)
    e.add(20, max_tokens=4)
    e.add(20, max_tokens=5)
    e.turns(4)
    assert e.cache.free == 3
    e.cache.free = 1  # one turn earlier, and nobody's end is foreseen
    assert e.decodes(e.turn()) == [0]
    assert e.states[1].preemptions == 1
    assert e.waiting == [1]


def test_retraction_takes_the_fewest_outputs_then_the_longest_prompt(engine: Make) -> None:
    e = engine()
    for prompt in (20, 30, 40):
        e.add(prompt, max_tokens=20)
    e.turns(4)
    e.cache.free = 2  # three are needed
    launch = e.turn()
    # The longest prompt goes; the others are in sorted order, the shortest prompt first.
    assert e.waiting == [2]
    assert e.decodes(launch) == [0, 1]
    assert e.states[2].num_output == 4  # its outputs are kept
    assert e.states[2].num_computed == 0
    # Its three computed outputs made room for 2 x 20 tokens only with its evicted prompt.
    assert e.cache.free == 2 + 3 + 40 - 2


def test_a_retracted_request_joins_the_end_and_prefills_its_outputs(engine: Make) -> None:
    e = engine(max_running_requests=2, retract_decode_steps=1)
    for prompt in (20, 30, 10):
        e.add(prompt, max_tokens=20)
    e.turns(4)
    assert e.waiting == [2]
    e.cache.free = 1
    e.turn()
    assert e.waiting == [2, 1]
    e.cache.free = 900
    assert e.prefills(e.turn()) == [(2, 0, 10)]
    e.states[2].output_limit = 1
    launch = e.turn()
    while e.waiting:
        launch = e.turn()
    assert e.prefills(launch) == [(1, 30, 4)]  # its prompt is in the tree still


def test_after_a_retraction_the_ratio_is_what_was_generated(engine: Make) -> None:
    e = engine()
    for prompt in (20, 30, 40):
        e.add(prompt, max_tokens=100)
    e.turns(4)
    e.cache.free = 2
    e.turn()
    assert e.core.ratio.now == pytest.approx((4 + 4 + 2 * 20) / (200 + 1))


def test_retraction_by_priority_keeps_the_urgent(engine: Make) -> None:
    e = engine(retraction_policy="priority")
    e.add(20, max_tokens=20, priority=5)
    e.add(30, max_tokens=20, priority=1)
    e.add(40, max_tokens=20, priority=0)
    e.turns(4)
    e.cache.free = 2
    e.turn()
    assert e.waiting == [0]
    assert e.running == [2, 1]


def test_the_last_request_is_aborted_if_it_does_not_fit_alone(engine: Make) -> None:
    e = engine()
    e.add(20)
    e.add(30)
    e.turns(2)
    e.cache.free = 0
    for job in e.core.running:  # nothing can be evicted, and retracting 1 frees nothing
        e.cache.tree.lock(job.lock)
    e.states[1].num_computed = 30
    e.turn()
    assert e.states[0].finish_reason == "abort"
    assert e.waiting == [1]
    assert e.running == []
    assert e.scheduler.num_waiting == 1


def test_the_ratio_falls_with_decodes_and_starts_again_when_idle(engine: Make) -> None:
    e = engine()
    ratio = e.core.ratio
    assert (ratio.init, ratio.least) == pytest.approx((0.7, 0.098))
    e.add(20, max_tokens=4)
    e.turns(4)
    assert ratio.now == pytest.approx(0.7 - 3 * (0.7 - 0.098) / 600)
    assert e.scheduler.has_requests()
    assert not e.scheduler.has_unfinished()
    assert e.turn() is None
    assert ratio.now == 0.7
    assert not e.scheduler.has_requests()


def test_a_mixed_batch_carries_the_running_requests(engine: Make) -> None:
    e = engine(enable_mixed_chunk=True)
    e.add(20)
    e.turn()
    e.add(150)
    launch = e.turn()
    # The decode takes one token of the chunk's budget.
    assert e.prefills(launch) == [(1, 0, 99)]
    assert e.decodes(launch) == [0]
    assert e.running == []
    launch = e.turn()
    assert e.prefills(launch) == [(1, 99, 51)]
    assert e.decodes(launch) == [0]
    assert e.core.ratio.now == 0.7  # it falls with pure decodes only


def test_mixed_decodes_sit_out_when_they_do_not_fit(engine: Make) -> None:
    pages = {"page_size": 10, "chunked_prefill_size": 200}
    e = engine(enable_mixed_chunk=True, schedule_conservativeness=0.0, **pages)
    for _ in range(3):
        e.add(20, max_tokens=6)
    e.turn()
    e.add(98, max_tokens=0)
    e.cache.free = 120  # the prefill takes 100; each decode stands before a new page of 10
    launch = e.turn()
    assert e.prefills(launch) == [(3, 0, 98)]
    assert e.decodes(launch) == []
    assert e.running == [0, 1, 2]
    assert all(e.states[index].preemptions == 0 for index in range(3))
    assert e.decodes(e.turn()) == [0, 1, 2]  # the other one has ended and can be evicted


def test_mixed_decodes_go_along_when_one_page_more_is_free(engine: Make) -> None:
    pages = {"page_size": 10, "chunked_prefill_size": 200}
    e = engine(enable_mixed_chunk=True, schedule_conservativeness=0.0, **pages)
    for _ in range(3):
        e.add(20, max_tokens=6)
    e.turn()
    e.add(98, max_tokens=0)
    e.cache.free = 130
    assert e.decodes(e.turn()) == [0, 1, 2]


def test_pages_are_taken_at_their_boundary(engine: Make) -> None:
    e = engine(page_size=10, chunked_prefill_size=100)
    e.add(20, max_tokens=30)
    e.turn()
    assert e.cache.free == 980
    e.turn()
    assert e.cache.free == 970
    e.turns(9)
    assert e.cache.free == 970
    e.turn()
    assert e.cache.free == 960


@pytest.mark.parametrize("overlap", [True, False])
def test_a_decode_step_of_64_requests_is_cheap(engine: Make, overlap: bool) -> None:
    # 32 µs when written; the bound leaves room for a busy machine, not for another loop.
    e = engine(
        overlap=overlap,
        max_total_num_tokens=400_000,
        context_length=5000,
        max_running_requests=64,
        chunked_prefill_size=8192,
    )
    for _ in range(64):
        e.add(100, max_tokens=4000)
    e.turns(10)
    best_s = 1.0
    for _ in range(15):
        start_s = time.process_time()
        e.turns(100)
        best_s = min(best_s, (time.process_time() - start_s) / 100)
    assert len(e.running) == 64
    assert best_s < 160e-6
