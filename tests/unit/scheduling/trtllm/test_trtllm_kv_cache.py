"""KV cache manager V1: allocation, the radix tree, partial reuse, eviction, prefix deferral."""

from collections.abc import Callable
from typing import Any

import pytest

from twin.request import Request, RequestState, SegmentContent
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.siblings import prefix_key

Make = Callable[..., Any]
REUSE = {"enable_block_reuse": True}


def reused(run: Any, *request: Any, **fields: Any) -> int:
    """Add a request that generates one token, run it alone, return what it reused."""
    state = run.add(*request, **fields)
    while state.cached_tokens < 0:
        run.step()
    while run.scheduler.has_requests():
        run.step()
    return int(state.cached_tokens)


@pytest.mark.parametrize(("prompt", "blocks"), [(20, 2), (21, 3)])
def test_the_whole_prompt_gets_blocks_at_the_first_chunk(
    bench: Make, prompt: int, blocks: int
) -> None:
    run = bench(enable_chunked_prefill=True, max_num_tokens=10)
    state = run.add(prompt)
    run.step()
    assert state.num_computed == 10
    assert len(state.blocks) == blocks


def test_a_new_block_where_the_token_count_passes_a_multiple(bench: Make) -> None:
    run = bench()
    state = run.add(9)
    held = []
    for _ in range(13):
        run.step()
        held.append((state.num_computed, len(state.blocks)))
    assert held[0] == (9, 1)
    assert (10, 1) in held
    assert (11, 2) in held
    assert (20, 2) in held
    assert (21, 3) in held


def test_no_null_block_and_no_watermark(bench: Make, chunks: Make) -> None:
    run = bench(num_blocks=3)
    run.add(29, 1)
    assert chunks(run.step()) == [(0, 29)]
    assert run.scheduler.usable_blocks == 3
    run = bench(num_blocks=4, cuda_graph_dummy_block=True)
    assert run.scheduler.usable_blocks == run.scheduler.free_blocks == 3


def test_more_than_there_is_is_a_fault_of_the_caller(limits: Make) -> None:
    kv = KvCache(limits(num_blocks=2))
    kv.allocate(2, [])
    with pytest.raises(ValueError, match="1 blocks asked for, 0 free"):
        kv.allocate(1, [])


def test_the_last_prompt_token_is_never_matched(bench: Make) -> None:
    run = bench(**REUSE)
    assert reused(run, 40, 1, shared=(7, 40)) == 0
    assert reused(run, 40, 1, shared=(7, 40)) == 39  # 3 blocks and 9 tokens of the fourth
    run = bench(**REUSE, enable_partial_reuse=False)
    assert reused(run, 40, 1, shared=(7, 40)) == 0
    assert reused(run, 40, 1, shared=(7, 40)) == 30
    assert reused(run, 41, 1, shared=(7, 40)) == 40


def test_nothing_after_a_partial_match_is_matched(bench: Make) -> None:
    run = bench(**REUSE)
    reused(run, 60, 1, shared=(7, 60))
    # 25 tokens are equal: two blocks, and 5 tokens of the third.
    assert reused(run, 60, 1, shared=(7, 25)) == 25


def test_best_child_wins(bench: Make) -> None:
    run = bench(**REUSE)
    ids = {"a": (1, 2, 3), "b": (1, 2, 4), "c": (1, 2, 5)}
    # b shares 2 more tokens with c than a does.
    run.add(30, 1, content=SegmentContent((1, 6), (13, 30)))
    run.add(30, 1, content=SegmentContent(ids["b"], (13, 15, 30)))
    run.steps(6)
    assert reused(run, 30, 1, content=SegmentContent(ids["c"], (13, 15, 30))) == 15


def test_an_idle_leaf_is_taken_over_and_leaves_the_tree(bench: Make) -> None:
    run = bench(**REUSE, num_blocks=10)
    reused(run, 15, 1, shared=(7, 15))
    leaf = run.kv.tree.matched(run.states[0].block_keys, 9)
    assert len(leaf) == 1
    state = run.add(15, 1, shared=(7, 13))
    run.schedule()
    assert state.cached_tokens == 13
    assert len(state.blocks) == 2
    run.update()
    # The tail of 0 with its last 2 tokens is gone: 13 tokens and the own tail remain.
    assert reused(run, 16, 1, shared=(7, 16)) == 13


def test_a_block_in_use_is_copied(bench: Make) -> None:
    run = bench(**REUSE, num_blocks=10)
    first = run.add(25, 30, shared=(7, 25))
    run.steps(8)  # blocks 0, 1 and 2 are full and stored, the fourth is growing
    state = run.add(25, 1, shared=(7, 22))
    run.schedule()
    assert state.cached_tokens == 22
    assert state.blocks[:2] == first.blocks[:2]
    assert state.blocks[2] not in first.blocks
    assert first.blocks[2] in run.kv.tree


def test_without_copying_a_block_in_use_is_no_partial_match(bench: Make) -> None:
    run = bench(**REUSE, num_blocks=10, copy_on_partial_reuse=False)
    run.add(25, 30, shared=(7, 25))
    run.steps(8)
    state = run.add(25, 1, shared=(7, 22))
    run.step()
    assert state.cached_tokens == 20
    run = bench(**REUSE, copy_on_partial_reuse=False)
    reused(run, 25, 1, shared=(7, 25))
    assert reused(run, 25, 1, shared=(7, 22)) == 22


def test_context_blocks_enter_the_tree_when_the_context_is_processed(bench: Make) -> None:
    run = bench(**REUSE, enable_chunked_prefill=True, max_num_tokens=20)
    state = run.add(40, 5, shared=(7, 40))
    run.step()
    assert not run.kv.matched(state, 40)  # half done
    run.schedule()
    assert not run.kv.matched(state, 40)
    run.update()
    assert len(run.kv.matched(state, 41)) == 4


def test_generation_blocks_enter_the_tree_as_they_fill(bench: Make) -> None:
    run = bench(**REUSE)
    state = run.add(18, 9, shared=(7, 60))
    run.step()
    assert len(run.kv.matched(state, 60)) == 1
    run.step()
    assert len(run.kv.matched(state, 60)) == 1  # 19 computed
    run.step()
    assert len(run.kv.matched(state, 60)) == 2  # 20 computed


def test_the_next_turn_hits_prompt_and_answer(bench: Make) -> None:
    run = bench(**REUSE)
    reused(run, 17, 8, shared=(7, 25))
    # 24 of 25 tokens were computed: the last one never is.
    assert reused(run, 40, 1, shared=(7, 25)) == 24
    run = bench(**REUSE, enable_partial_reuse=False)
    reused(run, 17, 8, shared=(7, 25))
    assert reused(run, 40, 1, shared=(7, 25)) == 20


def test_equal_content_computed_twice_stands_in_the_tree_once(bench: Make) -> None:
    run = bench(**REUSE, enable_prefix_aware_scheduling=False)
    one, two = (run.add(30, 9, shared=(7, 25)) for _ in range(2))
    run.steps(2)
    assert one.cached_tokens == two.cached_tokens == 0
    assert [block in run.kv.tree for block in one.blocks[:3]] == [True, True, True]
    assert [block in run.kv.tree for block in two.blocks[:3]] == [False, False, True]
    assert run.kv.tree.num_children[one.blocks[1]] == 2  # the third of two hangs under one's


def test_least_recently_released_goes_first_the_tail_before_its_head(bench: Make) -> None:
    run = bench(**REUSE, num_blocks=6)
    reused(run, 20, 1, shared=(7, 20))
    reused(run, 20, 1, shared=(8, 20))
    reused(run, 20, 1, shared=(9, 20))
    order = run.kv.free_order()
    assert [block in run.kv.tree for block in order] == [True] * 6
    tail_of_7 = run.kv.matched(run.states[0], 21)[1]
    assert order[0] == tail_of_7
    reused(run, 5, 1)
    assert len(run.kv.matched(run.states[0], 21)) == 1
    assert len(run.kv.matched(run.states[1], 21)) == 2


def test_a_hit_makes_blocks_recent(bench: Make) -> None:
    run = bench(**REUSE, num_blocks=6)
    for family in (7, 8, 9):
        reused(run, 20, 1, shared=(family, 20))
    assert reused(run, 21, 1, shared=(7, 20)) == 20
    reused(run, 15, 1)
    assert len(run.kv.matched(run.states[0], 21)) == 2
    assert len(run.kv.matched(run.states[1], 21)) == 0


def state_of(index: int, prompt: int, segments: Any, ends: Any) -> RequestState:
    content = SegmentContent(segments, ends)
    state = RequestState(Request(index, 0.0, prompt, 1, content=content))
    state.block_keys = content.block_keys(10, prompt + 10)
    return state


def test_only_leaves_go_and_else_a_block_with_all_that_follows(limits: Make) -> None:
    kv = KvCache(limits(**REUSE, num_blocks=4))
    a, b = state_of(0, 20, (1, 2), (10, 20)), state_of(1, 20, (1, 3), (10, 20))
    for state in (a, b):
        state.num_output = 1
        state.blocks = []
        kv.allocate(2, state.blocks)  # as if both were computed in the same step
        state.num_computed = 20
        kv.store(state, 20)
    kv.release(a)
    head_of_a = kv.matched(a, 21)[0]
    assert kv.free_order()[-1] == head_of_a
    kv.allocate(1, [])  # the tail of a
    assert len(kv.matched(a, 21)) == 1
    # b's tail, held, hangs under a's head, the one free block left: both leave the tree.
    assert len(kv.matched(b, 21)) == 2
    taken: list[int] = []
    kv.allocate(1, taken)
    assert taken == [head_of_a]
    assert kv.matched(b, 21) == []
    kv.release(b)
    assert len(kv.matched(b, 21)) == 2  # its own blocks, stored from the start again
    assert kv.num_free == 2


def test_a_leaf_goes_before_an_older_block_with_successors(limits: Make) -> None:
    kv = KvCache(limits(**REUSE, num_blocks=5))
    a, b = state_of(0, 20, (1, 2), (10, 20)), state_of(1, 20, (1, 3), (10, 20))
    late: list[int] = []
    kv.allocate(1, late)
    for state in (a, b):
        state.num_output = 1
        kv.allocate(2, state.blocks)
        state.num_computed = 20
        kv.store(state, 20)
    kv.release(a)
    head_of_a = kv.matched(a, 21)[0]
    kv.allocate(1, [])  # the tail of a; what hangs under its head now is b's
    c = RequestState(Request(2, 0.0, 1, 1), blocks=late)
    kv.release(c)
    assert kv.free_order() == [head_of_a, late[0]]
    taken: list[int] = []
    kv.allocate(1, taken)
    assert taken == late
    assert len(kv.matched(b, 21)) == 2


def test_a_request_without_content_equals_itself_alone() -> None:
    one, other = (Request(index, 0.0, 5, 1) for index in (0, 1))
    assert prefix_key(one, 3) == prefix_key(one, 4)
    assert prefix_key(one, 3) != prefix_key(other, 3)


def test_prefix_counters(bench: Make) -> None:
    run = bench(**REUSE)
    reused(run, 40, 1, shared=(7, 40))
    reused(run, 40, 1, shared=(7, 40))
    prefix = run.scheduler.prefix
    assert (prefix.requests, prefix.queries, prefix.hits) == (2, 80, 39)


def test_a_context_is_deferred_while_another_claims_its_first_new_block(
    bench: Make, chunks: Make
) -> None:
    run = bench(**REUSE)
    run.add(20, 9, shared=(7, 15))
    run.add(25, 9, shared=(7, 15))
    run.add(20, 9, shared=(8, 15))
    assert chunks(run.step()) == [(0, 20), (2, 20)]  # skipped, but it stops nobody
    plan = run.step()
    assert plan.admitted == [(run.states[1], 15)]
    assert chunks(plan) == [(1, 10), (0, 1), (2, 1)]


@pytest.mark.parametrize("policy", ["GUARANTEED_NO_EVICT", "MAX_UTILIZATION"])
def test_deferral_of_all_but_one_each_step(bench: Make, chunks: Make, policy: str) -> None:
    # One full block in common; without overlap the second step finds it.
    run = bench(**REUSE, capacity_scheduler_policy=policy)
    for _ in range(3):
        run.add(20, 9, shared=(7, 10))
    assert chunks(run.step()) == [(0, 20)]
    assert sorted(chunks(run.step())) == [(0, 1), (1, 10), (2, 10)]


@pytest.mark.parametrize(
    "off",
    [
        {"enable_prefix_aware_scheduling": False},
        {"enable_block_reuse": False},
        {"capacity_scheduler_policy": "STATIC_BATCH"},
    ],
)
def test_where_nothing_is_deferred(bench: Make, chunks: Make, off: dict[str, Any]) -> None:
    run = bench(**{**REUSE, **off})
    run.add(20, 9, shared=(7, 15))
    run.add(20, 9, shared=(7, 15))
    assert chunks(run.step()) == [(0, 20), (1, 20)]


def test_less_than_a_full_block_in_common_defers_nobody(bench: Make, chunks: Make) -> None:
    run = bench(**REUSE)
    run.add(20, 9, shared=(7, 9))
    run.add(20, 9, shared=(7, 9))
    assert chunks(run.step()) == [(0, 20), (1, 20)]


def test_a_half_done_context_claims_its_block(bench: Make, chunks: Make) -> None:
    run = bench(**REUSE, enable_chunked_prefill=True, max_num_tokens=40)
    run.add(50, 9, shared=(7, 35))
    run.step()
    run.add(40, 9, shared=(7, 35))
    assert chunks(run.step()) == [(0, 10)]
    plan = run.step()
    assert plan.admitted == [(run.states[1], 35)]


def test_with_overlap_a_deferral_ends_before_the_blocks_are_there(
    bench: Make, chunks: Make
) -> None:
    run = bench(**REUSE, overlap=True)
    run.add(20, 9, shared=(7, 15))
    run.add(20, 9, shared=(7, 15))
    assert chunks(run.step()) == [(0, 20)]
    plan = run.step()  # 0 generates now, and its blocks are stored after this decision
    assert plan.admitted == [(run.states[1], 0)]


def test_half_done_contexts_behind_a_head_that_never_fits_go_on(bench: Make, chunks: Make) -> None:
    # 1 is deferred, 2 starts and holds blocks that 1 needs: without the rule all would stop.
    run = bench(**REUSE, enable_chunked_prefill=True, max_num_tokens=40, num_blocks=9)
    run.add(20, 1, shared=(7, 15))
    run.add(60, 25, shared=(7, 15))
    run.add(50, 1)
    assert chunks(run.step()) == [(2, 20), (0, 20)]
    steps = run.steps(40)
    assert steps[0] == [(2, 30)]
    assert all(state.finish_reason for state in run.states.values())
