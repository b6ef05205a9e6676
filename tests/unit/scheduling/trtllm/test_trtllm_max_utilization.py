"""MAX_UTILIZATION: who is paused, and what becomes of him."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from twin.request import Status

Make = Callable[..., Any]
POLICY = {"capacity_scheduler_policy": "MAX_UTILIZATION"}


@pytest.mark.parametrize(("blocks", "first"), [(3, [(0, 20)]), (4, [(0, 20), (1, 20)])])
def test_a_context_needs_the_blocks_of_its_prompt_only(
    bench: Make, chunks: Make, blocks: int, first: Any
) -> None:
    run = bench(**POLICY, num_blocks=blocks)
    run.add(20, 30)
    run.add(20, 30)
    assert chunks(run.schedule()) == first


def test_a_generation_needs_a_block_when_its_last_one_is_full(bench: Make, chunks: Make) -> None:
    run = bench(**POLICY, num_blocks=3)
    run.add(19, 9)
    run.step()
    assert run.kv.num_free == 1
    run.step()  # token 20 still fits
    assert run.kv.num_free == 1
    run.step()  # token 21 does not
    assert run.kv.num_free == 0


def test_the_last_started_request_is_paused(bench: Make, chunks: Make, indices: Make) -> None:
    run = bench(**POLICY, num_blocks=6)
    for _ in range(3):
        run.add(20, 30)
    assert chunks(run.step()) == [(0, 20), (1, 20), (2, 20)]
    # Each wants a third block: 0 pauses 2 and takes one of its blocks, 1 the other.
    plan = run.step()
    assert indices(plan.preempted) == [2]
    assert chunks(plan) == [(0, 1), (1, 1)]
    assert run.kv.num_free == 0
    assert run.states[2].status is Status.PREEMPTED


def test_a_request_may_pause_itself(bench: Make, chunks: Make, indices: Make) -> None:
    run = bench(**POLICY, num_blocks=5)
    run.add(25, 30)
    run.add(20, 30)
    run.step()
    plan = run.step()  # 0 has room in its third block; 1 needs one, and is the last started
    assert indices(plan.preempted) == [1]
    assert chunks(plan) == [(0, 1)]


def test_who_stands_behind_a_paused_one_is_out_of_the_pass(
    bench: Make, chunks: Make, indices: Make
) -> None:
    run = bench(**POLICY, num_blocks=6)
    for _ in range(3):
        run.add(20, 30)
    run.step()
    run.add(1, 1)  # one block would be free once 2 is paused, but 3 is behind the end
    run.scheduler._fetch()
    plan = run.step()
    assert indices(plan.preempted) == [2]
    assert chunks(plan) == [(0, 1), (1, 1)]


def test_a_first_chunk_is_not_started_so_it_stops_the_pass(bench: Make, chunks: Make) -> None:
    run = bench(**POLICY, num_blocks=5)
    run.add(35, 30)
    run.add(20, 30)
    run.add(5, 5)
    plan = run.step()
    assert chunks(plan) == [(0, 35)]
    assert not plan.preempted


def test_a_paused_request_keeps_its_token_in_flight_and_recomputes(
    bench: Make, chunks: Make, indices: Make
) -> None:
    run = bench(**POLICY, num_blocks=4, overlap=True)
    run.add(20, 9)
    run.add(20, 9)
    assert chunks(run.step()) == [(0, 20), (1, 20)]
    plan = run.schedule()  # both want a block; the first token of 1 is still in flight
    assert indices(plan.preempted) == [1]
    assert run.states[1].blocks == []
    assert run.states[1].num_computed == 0
    outcome = run.update()
    assert indices(outcome.delivered) == [0, 1]
    assert indices(outcome.stale) == [1]
    run.steps(8)  # until 0 is done
    assert run.states[0].status is Status.FINISHED
    plan = run.step()
    assert chunks(plan) == [(1, 21)]  # prompt and the token generated before
    assert plan.admitted == [(run.states[1], 0)]
    run.steps(12)
    assert run.states[1].num_output == 9
    assert run.kv.num_free == 4


def test_a_paused_request_is_readmitted_before_later_arrivals(bench: Make, chunks: Make) -> None:
    run = bench(**POLICY, num_blocks=6)
    for _ in range(3):
        run.add(20, 3)
    run.step()
    assert indices_of(run.step().preempted) == [2]
    run.add(20, 3)
    run.add(20, 3)
    started = [index for step in run.steps(12) for index, tokens in step if tokens > 1]
    assert started == [2, 3, 4]


def indices_of(states: Any) -> list[int]:
    return [state.request.index for state in states]


def test_a_paused_request_may_end_by_the_token_in_flight(bench: Make, indices: Make) -> None:
    run = bench(**POLICY, num_blocks=4, overlap=True)
    run.add(20, 9)
    run.add(20, 1)
    run.step()
    plan = run.schedule()
    assert indices(plan.preempted) == [1]  # to complete, but it counts as a generation
    outcome = run.update()
    assert indices(outcome.finished) == indices(outcome.finished_waiting) == [1]
    assert [a.state.request.index for a in run.scheduler.active] == [0]


def test_paused_blocks_stay_in_the_tree_and_are_hit_again(bench: Make, chunks: Make) -> None:
    run = bench(**POLICY, num_blocks=7, enable_block_reuse=True)
    run.add(21, 4)
    run.add(40, 9)
    run.step()
    plan = run.step()  # 1 wants a fifth block; it pauses itself
    assert indices_of(plan.preempted) == [1]
    assert run.steps(2) == [[(0, 1)], [(0, 1)]]
    plan = run.step()  # its four full blocks are found again, the token after them is not
    assert plan.admitted == [(run.states[1], 40)]
    assert chunks(plan) == [(1, 1)]
    assert run.states[1].cached_tokens == 0
    assert run.scheduler.prefix.preempted_hits == 40
    assert run.scheduler.prefix.preempted_queries == 41


def test_shared_blocks_do_not_count_as_given_back(bench: Make) -> None:
    # 0, 1 and 2 share four blocks and hold one each besides.
    run = bench(**POLICY, num_blocks=20, enable_block_reuse=True)
    run.add(41, 9, shared=(7, 40))
    run.step()
    run.add(45, 9, shared=(7, 40))
    run.step()
    run.add(45, 9, shared=(7, 40))
    run.step()
    assert run.kv.num_free == 20 - 7
    freed, given_back = run.scheduler._capacity._freed, Counter()
    active = run.scheduler.active
    assert [freed(active[place], given_back) for place in (2, 1, 0)] == [1, 1, 5]


def test_a_recomputed_prompt_too_long_for_a_step_runs_in_pieces(bench: Make) -> None:
    run = bench(**POLICY, num_blocks=6, max_num_tokens=22)
    run.add(20, 20)
    run.add(20, 20)
    seen = [chunk for step in run.steps(80) for chunk in step if chunk[1] > 1]
    assert [c for c in seen if c[0] == 1][1:] != []
    assert max(tokens for _, tokens in seen) <= 22
    assert [state.num_output for state in run.states.values()] == [20, 20]
