"""GUARANTEED_NO_EVICT and STATIC_BATCH."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]


@pytest.mark.parametrize(("blocks", "first"), [(9, [(0, 20)]), (10, [(0, 20), (1, 20)])])
def test_a_context_needs_its_blocks_to_completion(
    bench: Make, chunks: Make, blocks: int, first: Any
) -> None:
    # 20 prompt and 30 generated tokens are 5 blocks each.
    run = bench(num_blocks=blocks)
    run.add(20, 30)
    run.add(20, 30)
    assert chunks(run.schedule()) == first


def test_the_answer_is_cut_at_the_context_limit(bench: Make, chunks: Make) -> None:
    run = bench(num_blocks=10, max_seq_len=50)
    run.add(20, 999)
    run.add(20, 999)
    assert chunks(run.schedule()) == [(0, 20), (1, 20)]


def test_what_generations_still_need_is_summed_anew(bench: Make, chunks: Make) -> None:
    # 0 holds 2 of its 5 blocks, later more: free minus remaining stays 4, one short for 1.
    run = bench(num_blocks=9)
    run.add(20, 30)
    run.add(20, 30)
    for _ in range(25):
        assert [index for index, _ in chunks(run.step())] == [0]
    assert run.kv.num_free < 9 - 2


def test_the_first_that_does_not_fit_blocks_all_behind_it(bench: Make, chunks: Make) -> None:
    run = bench(num_blocks=9)
    run.add(20, 30)
    run.add(20, 30)
    run.add(5, 5)
    assert chunks(run.step()) == [(0, 20)]
    assert chunks(run.step()) == [(0, 1)]
    assert run.states[2].cached_tokens == -1


def test_generations_come_before_older_contexts_in_the_walk(bench: Make, chunks: Make) -> None:
    # Chunked: 0 is half done when 1 already generates; 1 is never short of its token.
    run = bench(enable_chunked_prefill=True, max_num_tokens=30)
    run.add(25)
    run.add(100)
    assert chunks(run.step()) == [(0, 25)]
    assert chunks(run.step()) == [(1, 20), (0, 1)]
    assert chunks(run.step()) == [(1, 20), (0, 1)]


def test_nobody_is_paused(bench: Make) -> None:
    run = bench(num_blocks=9, overlap=True)
    for _ in range(4):
        run.add(20, 30)
    for _ in range(200):
        assert not run.step().preempted
    assert all(state.num_output == 30 for state in run.states.values())


def test_no_room_no_fetch(bench: Make, chunks: Make) -> None:
    run = bench(max_batch_size=2)
    for _ in range(3):
        run.add(10, 2)
    assert chunks(run.step()) == [(0, 10), (1, 10)]
    assert len(run.scheduler.active) == 2
    assert run.scheduler.num_waiting == 1
    run.step()
    assert chunks(run.step()) == [(2, 10)]


def test_retiring_requests_still_count(bench: Make, chunks: Make) -> None:
    # Overlap: the last token of 0 is in flight while step 2 is decided; its place is taken.
    run = bench(max_batch_size=1, overlap=True)
    run.add(10, 2)
    run.add(10, 2)
    assert run.steps(3) == [[(0, 10)], [(0, 1)], []]
    assert chunks(run.step()) == [(1, 10)]


def test_main_credits_blocks_that_others_hold_early_does_not(bench: Make, chunks: Make) -> None:
    for stratum, expected in (("main", [1, 0]), ("early", [0])):
        run = bench(num_blocks=10, enable_block_reuse=True, stratum=stratum)
        run.add(41, 9, shared=(7, 40))  # 5 blocks to completion
        run.steps(3)
        # 5 blocks are left; 6 are needed, of which 4 are held by the other.
        run.add(41, 19, shared=(7, 40))
        assert [index for index, _ in chunks(run.step())] == expected


def test_credit_counts_no_block_that_nobody_holds(bench: Make, chunks: Make) -> None:
    # The matched blocks are themselves among the free ones: 9 free, 10 needed, credit 0.
    run = bench(num_blocks=14, enable_block_reuse=True)
    run.add(41, 1, shared=(7, 40))
    run.step()
    run.add(41, 9)
    run.steps(2)
    assert run.kv.num_free == 9
    run.add(41, 59, shared=(7, 40))
    assert [index for index, _ in chunks(run.step())] == [1]


def test_static_batch_looks_at_contexts_only_without_generations(bench: Make, chunks: Make) -> None:
    run = bench(capacity_scheduler_policy="STATIC_BATCH")
    run.add(10, 3)
    assert chunks(run.step()) == [(0, 10)]
    run.add(10, 1)
    assert run.steps(2) == [[(0, 1)], [(0, 1)]]
    assert chunks(run.step()) == [(1, 10)]


def test_static_batch_counts_a_request_whose_last_token_is_in_flight(bench: Make) -> None:
    run = bench(capacity_scheduler_policy="STATIC_BATCH", overlap=True)
    run.add(10, 1)
    run.add(95, 1)
    assert run.steps(3) == [[(0, 10)], [], [(1, 95)]]


def test_static_batch_reserves_to_completion_and_blocks_at_the_head(
    bench: Make, chunks: Make
) -> None:
    run = bench(capacity_scheduler_policy="STATIC_BATCH", num_blocks=9)
    run.add(20, 30)
    run.add(20, 30)
    run.add(5, 5)
    assert chunks(run.step()) == [(0, 20)]
