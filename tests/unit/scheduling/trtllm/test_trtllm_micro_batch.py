"""The micro-batch scheduler: budget, chunking, order in the batch."""

from collections.abc import Callable
from typing import Any

import pytest

from twin.request import Request, RequestState
from twin.scheduling.trtllm.active import ActiveRequest
from twin.scheduling.trtllm.chunking import Prompt, equal_progress, first_come_first_served
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.micro_batch import micro_batch

Make = Callable[..., Any]


def test_without_chunking_a_prompt_that_does_not_fit_ends_the_walk(
    bench: Make, chunks: Make
) -> None:
    run = bench()
    run.add(50)
    run.add(51)
    run.add(10)
    assert chunks(run.step()) == [(0, 50)]
    assert chunks(run.step()) == [(1, 51), (2, 10), (0, 1)]  # mixed steps are normal
    run = bench()
    run.add(50)
    run.add(50)
    assert chunks(run.step()) == [(0, 50), (1, 50)]


def test_generations_of_no_evict_are_not_hurt_by_a_large_prompt(bench: Make, chunks: Make) -> None:
    run = bench(max_num_tokens=30)
    run.add(28)
    run.step()
    run.add(30)
    run.add(1)
    assert run.steps(2) == [[(0, 1)], [(0, 1)]]  # 30 + 1 exceed the budget by one


def test_the_break_at_a_large_prompt_hits_generations_of_max_utilization(
    bench: Make, chunks: Make
) -> None:
    # A readmitted context stands before younger generations.
    run = bench(capacity_scheduler_policy="MAX_UTILIZATION", max_num_tokens=40, num_blocks=10)
    run.add(35, 9)
    run.add(35, 20)
    assert [chunks(run.step()) for _ in range(2)] == [[(0, 35)], [(1, 35), (0, 1)]]
    # With eleven tokens for others, the order of the plan shows the walk was in order of arrival.
    assert chunks(run.step()) == [(0, 1), (1, 1)]


def test_one_prompt_a_step_where_two_exceed_the_budget(bench: Make, chunks: Make) -> None:
    run = bench(max_num_tokens=100)
    for _ in range(3):
        run.add(60)
    assert run.steps(3) == [[(0, 60)], [(1, 60), (0, 1)], [(2, 60), (0, 1), (1, 1)]]


def test_budget_counts_generations(bench: Make, chunks: Make) -> None:
    for prompt, together in ((98, True), (99, False)):
        run = bench()
        run.add(10)
        run.add(10)
        run.step()
        run.add(prompt)
        assert ((2, prompt) in chunks(run.step())) is together


@pytest.mark.parametrize("chunked", [True, False])
def test_the_walk_ends_at_max_batch_size(limits: Make, chunked: bool) -> None:
    # Fetching keeps the active ones within it too; the walk counts for itself.
    few = limits(max_batch_size=2, enable_chunked_prefill=chunked)
    generation = RequestState(Request(0, 0.0, 10, 9), num_computed=10, num_output=1, blocks=[0])
    states = [generation] + [RequestState(Request(i, 0.0, 10, 9)) for i in (1, 2)]
    taken = [ActiveRequest(state, 10, 9, 2) for state in states]
    batch = micro_batch(taken, few, KvCache(few))
    assert batch.generations == taken[:1]
    assert batch.contexts == [(taken[1], 10)]


def test_max_batch_size_counts_contexts_too(bench: Make, chunks: Make) -> None:
    run = bench(max_batch_size=2, enable_chunked_prefill=True, max_num_tokens=20)
    run.add(20)
    run.add(20)
    assert chunks(run.step()) == [(0, 20)]
    assert chunks(run.step()) == [(1, 10), (0, 1)]


@pytest.mark.parametrize(
    ("prompts", "first"),
    [
        ((60, 40), [(0, 60), (1, 40)]),  # all fit
        ((60, 41), [(1, 40), (0, 60)]),  # cut to 40, a multiple of 10; it does not end its prompt
        ((61, 45), [(1, 30), (0, 61)]),  # 39 left, rounded down
        ((95, 45), [(0, 95)]),  # 5 left are less than a unit: delayed
        ((150, 9), [(0, 100)]),
    ],
)
def test_first_come_first_served_chunks(
    bench: Make, chunks: Make, prompts: Any, first: Any
) -> None:
    run = bench(enable_chunked_prefill=True)
    for prompt in prompts:
        run.add(prompt)
    assert chunks(run.step()) == first


def test_a_short_prompt_behind_takes_what_a_rounded_chunk_leaves(bench: Make, chunks: Make) -> None:
    run = bench(enable_chunked_prefill=True)
    run.add(95)
    run.add(40)
    run.add(5)
    assert chunks(run.step()) == [(0, 95), (2, 5)]


def test_equal_progress_gives_a_unit_each_round() -> None:
    prompts = [Prompt(100), Prompt(15), Prompt(100)]
    assert equal_progress(prompts, 70, 10) == [30, 15, 20]
    # 75: one more unit does not fit for the first, nor for the last.
    assert equal_progress(prompts, 74, 10) == [30, 15, 20]
    assert equal_progress(prompts, 75, 10) == [30, 15, 30]
    assert equal_progress(prompts, 9, 10) == [0, 0, 0]
    assert equal_progress(prompts, 1000, 10) == [100, 15, 100]


def test_equal_progress_in_the_scheduler(bench: Make, chunks: Make) -> None:
    run = bench(
        enable_chunked_prefill=True,
        context_chunking_policy="EQUAL_PROGRESS",
        max_num_tokens=50,
    )
    run.add(15)
    run.add(100)
    run.add(100)
    assert chunks(run.step()) == [(1, 20), (2, 10), (0, 15)]


def test_final_chunks_follow_the_others_and_generations_come_last(
    bench: Make, chunks: Make
) -> None:
    run = bench(enable_chunked_prefill=True, max_num_tokens=40)
    run.add(10)
    run.step()
    run.add(15)
    run.add(50)
    assert chunks(run.step()) == [(2, 20), (1, 15), (0, 1)]


def test_a_windows_chunk_unit(bench: Make, chunks: Make) -> None:
    run = bench(
        enable_chunked_prefill=True,
        max_num_tokens=300,
        shortest_window_tokens=128,
        max_seq_len=1000,
    )
    run.add(600)
    assert chunks(run.step()) == [(0, 256)]


@pytest.mark.parametrize(("chunk", "cost"), [(10, 10), (59, 59), (60, 40), (61, 40), (100, 40)])
def test_a_chunk_that_reaches_the_end_with_its_reuse_costs_the_rest(chunk: int, cost: int) -> None:
    assert Prompt(100, 40).cost(chunk) == (cost if chunk < 60 else 60)
    assert Prompt(100).cost(chunk) == chunk
    assert Prompt(100, 100).cost(chunk) == 1


def test_first_come_charges_the_reuse_adjusted_cost() -> None:
    # 50 left: the first is cut to 50, which with 80 reused tokens ends its prompt for 20.
    assert first_come_first_served([Prompt(100, 80), Prompt(30)], 50, 10) == [50, 30]
    assert first_come_first_served([Prompt(100), Prompt(30)], 50, 10) == [50, 0]


def test_main_charges_a_prompt_without_its_prefix_early_the_whole(
    bench: Make, chunks: Make
) -> None:
    for stratum, together in (("main", True), ("early", False)):
        run = bench(enable_block_reuse=True, stratum=stratum, enable_partial_reuse=False)
        run.add(80, 1, shared=(7, 80))
        run.step()
        run.add(90, 1, shared=(7, 80))
        run.add(30, 1)
        first = chunks(run.step())
        assert first == ([(1, 10), (2, 30)] if together else [(1, 10)])


def test_a_chunk_moves_behind_the_reused_prefix_to_a_block_boundary(
    bench: Make, chunks: Make
) -> None:
    run = bench(enable_block_reuse=True, enable_chunked_prefill=True, max_num_tokens=60)
    run.add(25, 1, shared=(7, 25))
    run.step()
    run.add(200, 1, shared=(7, 25))
    plan = run.step()
    # 25 tokens are found: 2 blocks and 5 tokens of the tail that was stored at the end.
    assert plan.admitted[0][1] == 25
    assert chunks(plan) == [(1, 55)]  # 25 + 60 = 85, back to 80
    assert chunks(run.step()) == [(1, 60)]


def test_what_exceeds_the_budget_after_all_is_cut(bench: Make, chunks: Make) -> None:
    # 3 is charged 1 token beyond its cached prefix, most of whose blocks then go to 2.
    run = bench(enable_block_reuse=True, num_blocks=20)
    run.add(90, 1, shared=(8, 90))
    run.step()
    run.add(90, 1, shared=(7, 90))
    run.step()
    run.add(96, 4, shared=(9, 96))
    run.add(91, 1, shared=(8, 90))
    plan = run.step()
    assert plan.admitted == [(run.states[2], 0), (run.states[3], 10)]
    assert chunks(plan) == [(3, 4), (2, 96)]
    assert chunks(run.step()) == [(3, 77), (2, 1)]


def test_no_token_left_ends_the_walk_for_generations(bench: Make, chunks: Make) -> None:
    run = bench(max_num_tokens=3, max_batch_size=5)
    for _ in range(5):
        run.add(1, 9)
    assert [len(step) for step in run.steps(3)] == [3, 3, 3]
    assert [state.num_output for state in run.states.values()] == [3, 3, 3, 0, 0]
