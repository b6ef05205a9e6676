"""The waiting pass: budget, places, reservation, watermark, prefix hits."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]


def test_places_and_budget_end_the_pass(engine: Make, chunks: Make) -> None:
    bench = engine(max_num_seqs=2)
    for _ in range(3):
        bench.add(20)
    assert chunks(bench.step()) == [(0, 20), (1, 20)]

    bench = engine()
    for _ in range(3):
        bench.add(50)
    assert chunks(bench.step()) == [(0, 50), (1, 50)]
    assert chunks(bench.step()) == [(0, 1), (1, 1), (2, 50)]


def test_a_prompt_is_split_by_what_is_left(engine: Make, chunks: Make) -> None:
    bench = engine()
    bench.add(70)
    bench.add(70)
    assert chunks(bench.step()) == [(0, 70), (1, 30)]
    assert chunks(bench.step()) == [(0, 1), (1, 40)]


def test_without_chunked_prefill_the_head_waits_for_a_whole_step(
    engine: Make, chunks: Make
) -> None:
    bench = engine(enable_chunked_prefill=False)
    bench.add(50)
    bench.add(51)
    bench.add(10)
    assert chunks(bench.step()) == [(0, 50)]
    assert chunks(bench.step()) == [(0, 1), (1, 51), (2, 10)]

    bench = engine(enable_chunked_prefill=False)
    bench.add(50)
    bench.add(50)
    assert chunks(bench.step()) == [(0, 50), (1, 50)]


@pytest.mark.parametrize(("prompt", "admitted"), [(150, True), (151, False)])
def test_reservation_counts_the_whole_prompt(engine: Make, prompt: int, admitted: bool) -> None:
    bench = engine(num_gpu_blocks=20 + 1)
    bench.add(50)
    bench.add(prompt)
    bench.step()
    assert (bench.scheduler.num_running == 2) is admitted


def test_the_reservation_is_checked_and_not_kept(engine: Make, chunks: Make, indices: Make) -> None:
    bench = engine(
        num_gpu_blocks=20 + 1, max_num_batched_tokens=200, long_prefill_token_threshold=100
    )
    bench.add(150)
    bench.add(100)
    # 10 blocks are free after request 0's chunk; that it needs 5 of them keeps nobody out.
    assert chunks(bench.step()) == [(0, 100), (1, 100)]
    plan = bench.step()
    assert (chunks(plan), indices(plan.preempted)) == ([(0, 50)], [1])


def test_without_reservation_only_the_chunk_must_fit(engine: Make, chunks: Make) -> None:
    for reserve, wanted in ((True, [(0, 60)]), (False, [(0, 60), (1, 40)])):
        bench = engine(num_gpu_blocks=10 + 1, scheduler_reserve_full_isl=reserve)
        bench.add(60)
        bench.add(90)
        assert chunks(bench.step()) == wanted


@pytest.mark.parametrize(("prompt", "admitted"), [(80, True), (81, False)])
def test_the_watermark_stays_free(engine: Make, prompt: int, admitted: bool) -> None:
    for reserve in (True, False):
        bench = engine(
            num_gpu_blocks=20 + 1,
            watermark=0.1,
            max_num_batched_tokens=300,
            scheduler_reserve_full_isl=reserve,
        )
        bench.add(100)
        bench.add(prompt)
        bench.step()
        assert (bench.scheduler.num_running == 2) is admitted


def test_the_watermark_does_not_bind_an_empty_engine(engine: Make, chunks: Make) -> None:
    bench = engine(num_gpu_blocks=20 + 1, watermark=0.1, max_num_batched_tokens=300)
    bench.add(199)
    assert chunks(bench.step()) == [(0, 199)]
    # Nor a running request: it takes the last block.
    bench = engine(num_gpu_blocks=2 + 1, watermark=0.5)
    bench.add(10)
    bench.step()
    assert chunks(bench.step()) == [(0, 1)]
    assert bench.pool.num_free == 0


@pytest.mark.parametrize(("watermark", "readmitted"), [(0.0, [2]), (0.1, [])])
def test_a_preempted_request_respects_the_watermark(
    engine: Make, indices: Make, watermark: float, readmitted: list[int]
) -> None:
    bench = engine(num_gpu_blocks=9 + 1, watermark=watermark)
    bench.add(45)
    bench.add(5, 8)
    victim = bench.add(20)
    while not (plan := bench.step()).preempted:
        pass
    assert (indices(plan.preempted), victim.num_tokens) == ([2], 26)
    bench.step()  # request 1 ends here
    # 3 blocks are free and the victim needs 3.
    assert (bench.pool.num_free, indices(bench.scheduler.running)) == (3, [0])
    assert indices([state for state, _ in bench.step().admitted]) == readmitted


def test_a_hit_leaves_the_last_token_to_compute(engine: Make, chunks: Make, indices: Make) -> None:
    bench = engine(enable_prefix_caching=True)
    first = bench.add(40, shared=(1, 40))
    second = bench.add(40, shared=(1, 40))
    third = bench.add(41, shared=(1, 41))
    plan = bench.step()
    # The first one's blocks are cached by its own allocation call, so the others hit them.
    assert chunks(plan) == [(0, 40), (1, 10), (2, 1)]
    assert [hit for _, hit in plan.admitted] == [0, 30, 40]
    assert second.blocks[:3] == first.blocks[:3]
    assert second.blocks[3] != first.blocks[3]
    assert third.blocks[:4] == first.blocks
    assert (first.cached_tokens, second.cached_tokens, third.cached_tokens) == (0, 30, 40)


@pytest.mark.parametrize(("prompt", "admitted"), [(50, True), (51, False)])
def test_hits_nobody_holds_use_free_capacity(engine: Make, prompt: int, admitted: bool) -> None:
    bench = engine(enable_prefix_caching=True, num_gpu_blocks=10 + 1)
    bench.add(41, 1, shared=(1, 41))
    bench.step()
    bench.add(45)
    bench.step()
    assert bench.pool.free_order() == [10, 4, 3, 2, 1]
    late = bench.add(prompt, shared=(1, prompt))
    bench.step()
    # 4 cached blocks are hit; 50 tokens need 1 more of 5 free ones, 51 tokens 2 more.
    assert bool(late.blocks) is admitted
    if admitted:
        assert late.blocks == [1, 2, 3, 4, 10]


def test_hits_that_others_hold_cost_nothing(engine: Make) -> None:
    bench = engine(enable_prefix_caching=True, num_gpu_blocks=7 + 1)
    bench.add(41, shared=(1, 41))
    bench.step()
    late = bench.add(60, shared=(1, 60))
    bench.step()
    assert len(late.blocks) == 6
    assert bench.pool.num_free == 0


def test_a_hit_beyond_the_chunk_counts_the_chunk_only(engine: Make, chunks: Make) -> None:
    bench = engine(enable_prefix_caching=True, num_gpu_blocks=9 + 1, max_num_batched_tokens=50)
    bench.add(45, 1, shared=(1, 45))
    bench.step()
    bench.add(90, shared=(1, 90))
    assert chunks(bench.step()) == [(1, 50)]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("output", "cached"), [(10, 1), (11, 2)])
def test_cached_blocks_a_finished_request_leaves(
    engine: Make, output: int, cached: int, asynchronous: bool
) -> None:
    for limit in ({"max_tokens": output}, {"max_tokens": 50, "stop_after_tokens": output}):
        bench = engine(enable_prefix_caching=True, async_scheduling=asynchronous)
        state = bench.add(10, **limit)
        while bench.scheduler.has_requests():
            bench.step()
        assert state.num_output == output
        assert len(bench.pool.longest_hit(state.block_keys, 9)) == cached


def test_lookups_of_preempted_requests_are_counted_apart(engine: Make, indices: Make) -> None:
    bench = engine(enable_prefix_caching=True, num_gpu_blocks=5 + 1)
    bench.add(15, 8)
    bench.add(10, 3)
    victim = bench.add(15, 20)
    bench.step()
    prefix = bench.scheduler.prefix
    assert (prefix.requests, prefix.queries, prefix.hits) == (3, 40, 0)
    assert indices(bench.step().preempted) == [2]
    # Without content of its own it still finds its own first block.
    plan = bench.step()
    while not plan.admitted:
        plan = bench.step()
    assert [(state.request.index, hit) for state, hit in plan.admitted] == [(2, 10)]
    assert (prefix.requests, prefix.queries, prefix.hits) == (3, 40, 0)
    counted = (prefix.preempted_requests, prefix.preempted_queries, prefix.preempted_hits)
    assert counted == (1, 16, 10)
    assert victim.cached_tokens == 0


def test_a_blocked_lookup_is_not_counted(engine: Make) -> None:
    bench = engine(enable_prefix_caching=True, num_gpu_blocks=5 + 1)
    bench.add(30)
    bench.add(40)
    for _ in range(3):
        bench.step()
    assert bench.scheduler.prefix.requests == 1


def test_first_admissions_come_before_readmitted_ones(engine: Make) -> None:
    bench = engine(scheduling_policy="priority", num_gpu_blocks=5 + 1)
    bench.add(15, priority=1)
    bench.add(15, priority=1)
    bench.add(10, 2, priority=0)
    bench.step()
    bench.step()  # request 1 (latest) is preempted, request 2 ends
    bench.add(9, priority=3)
    plan = bench.step()
    assert [state.request.index for state, _ in plan.scheduled] == [0, 1, 3]
    assert [state.request.index for state, _ in plan.admitted] == [3, 1]
