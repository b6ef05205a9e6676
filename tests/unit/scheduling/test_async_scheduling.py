"""What scheduling one step ahead changes."""

from collections.abc import Callable
from typing import Any

import pytest

from twin.request import Status

Make = Callable[..., Any]


def run_engine_core(bench: Any) -> list[str]:
    """Drive the engine core's loop to the end; S: schedule, S*: an empty one, U: update."""
    scheduler, log = bench.scheduler, []
    while scheduler.has_requests() or bench.in_flight:
        if scheduler.has_requests():
            plan = bench.schedule()
            told = "".join(f" tells {state.request.index}" for state in plan.finished_sent)
            log.append(f"S{plan.index}" + ("" if plan.total_tokens else "*") + told)
            room = len(bench.in_flight) < scheduler.queue_depth
            if room and (plan.total_tokens or scheduler.has_requests()):
                continue
        log.append(f"U{bench.in_flight[0].index}")
        bench.update()
    return log


def test_a_lone_request_of_three_tokens(engine: Make) -> None:
    bench = engine(async_scheduling=True)
    bench.add(20, 3)
    assert run_engine_core(bench) == [
        "S0", "S1", "U0", "S2", "U1", "S3*", "U2", "S4* tells 0", "U3", "U4",
    ]  # fmt: skip


def test_the_same_under_synchronous_scheduling(engine: Make) -> None:
    bench = engine()
    bench.add(20, 3)
    assert run_engine_core(bench) == ["S0", "U0", "S1", "U1", "S2", "U2", "S3* tells 0", "U3"]


def test_placeholders_and_tokens_in_flight(engine: Make) -> None:
    bench = engine(async_scheduling=True, max_num_batched_tokens=15)
    state = bench.add(20, 50)

    def counts() -> tuple[int, int, int, int]:
        return state.num_computed, state.num_tokens, state.placeholders, state.in_flight

    bench.schedule()
    assert counts() == (15, 20, 0, 15)
    bench.schedule()
    assert counts() == (20, 20, 1, 20)
    assert bench.update().delivered == []
    assert counts() == (20, 20, 1, 5)
    bench.schedule()
    assert counts() == (21, 20, 2, 6)
    assert bench.update().delivered == [state]
    assert counts() == (21, 21, 1, 1)


def test_a_finish_by_length_is_foreseen(engine: Make, chunks: Make, indices: Make) -> None:
    bench = engine(async_scheduling=True)
    bench.add(20, 2)
    bench.schedule()
    assert chunks(bench.schedule()) == [(0, 1)]
    bench.update()
    assert chunks(bench.schedule()) == []
    assert indices(bench.scheduler.running) == [0]
    assert bench.pool.num_free == 996
    outcome = bench.update()
    assert (indices(outcome.finished), bench.states[0].finish_reason) == ([0], "length")
    assert bench.pool.num_free == 999


def test_a_finish_by_context_is_foreseen(engine: Make, chunks: Make) -> None:
    bench = engine(async_scheduling=True, max_model_len=22)
    state = bench.add(20, 50)
    assert chunks(bench.schedule()) == [(0, 20)]
    assert chunks(bench.schedule()) == [(0, 1)]
    bench.update()
    assert chunks(bench.schedule()) == []
    bench.update()
    assert (state.num_output, state.finish_reason) == (2, "length")


def test_a_stop_token_is_found_one_token_late(engine: Make, chunks: Make, indices: Make) -> None:
    bench = engine(async_scheduling=True)
    state = bench.add(20, 50, stop_after_tokens=1)
    bench.schedule()
    assert chunks(bench.schedule()) == [(0, 1)]
    assert len(state.blocks) == 3  # the extra token even took a block
    outcome = bench.update()
    assert (indices(outcome.finished), state.finish_reason) == ([0], "stop")
    assert (bench.pool.num_free, bench.scheduler.num_running) == (999, 0)
    outcome = bench.update()
    assert (indices(outcome.discarded), outcome.delivered) == ([0], [])
    assert (state.num_output, state.in_flight) == (1, 0)


def test_a_stop_token_that_is_also_the_last_counts_as_stop(engine: Make) -> None:
    for asynchronous in (False, True):
        bench = engine(async_scheduling=asynchronous)
        state = bench.add(20, 3, stop_after_tokens=3)
        run_engine_core(bench)
        assert (state.num_output, state.finish_reason) == (3, "stop")


def test_freed_blocks_serve_the_second_schedule_after(engine: Make, chunks: Make) -> None:
    bench = engine(async_scheduling=True, num_gpu_blocks=4 + 1)
    bench.add(20, 1)
    bench.add(30, 1)
    bench.schedule()
    assert chunks(bench.schedule()) == []  # step 0 has not been processed
    bench.update()
    assert chunks(bench.schedule()) == [(1, 30)]


def preempted_with_output_in_flight(engine: Make, **request: Any) -> Any:
    """Request 0 takes the block that request 1 holds, whose first token is in flight."""
    bench = engine(async_scheduling=True, num_gpu_blocks=3 + 1)
    bench.add(20, 50)
    bench.add(10, **request)
    bench.schedule()
    plan = bench.schedule()
    return bench, plan


def test_a_stale_token_is_delivered(engine: Make, chunks: Make, indices: Make) -> None:
    bench, plan = preempted_with_output_in_flight(engine)
    victim = bench.states[1]
    assert (chunks(plan), indices(plan.preempted)) == ([(0, 1)], [1])
    assert (victim.placeholders, victim.in_flight, victim.num_computed) == (0, 10, 0)
    outcome = bench.update()
    assert (indices(outcome.delivered), indices(outcome.stale)) == ([0, 1], [1])
    assert (victim.num_tokens, victim.placeholders, victim.in_flight) == (11, 0, 0)
    assert victim.status is Status.PREEMPTED


@pytest.mark.parametrize(
    ("request_", "reason"),
    [({"max_tokens": 1}, "length"), ({"stop_after_tokens": 1}, "stop")],
)
def test_a_stale_token_can_end_a_waiting_request(
    engine: Make, indices: Make, request_: dict[str, int], reason: str
) -> None:
    bench, _ = preempted_with_output_in_flight(engine, **request_)
    outcome = bench.update()
    assert indices(outcome.finished) == indices(outcome.finished_waiting) == [1]
    assert (bench.states[1].finish_reason, bench.scheduler.num_waiting) == (reason, 0)
    assert indices(bench.schedule().finished_sent) == [1]


def test_stale_output_of_a_half_done_prefill_brings_no_token(engine: Make) -> None:
    bench = engine(
        async_scheduling=True,
        num_gpu_blocks=4 + 1,
        max_num_batched_tokens=35,
        scheduler_reserve_full_isl=False,
    )
    bench.add(20, 50)
    victim = bench.add(30, 50)
    bench.schedule()  # 20 and 15 tokens: 2 + 2 blocks
    plan = bench.schedule()
    assert plan.preempted == [victim]
    outcome = bench.update()
    assert (outcome.stale, victim.num_output, victim.in_flight) == ([], 0, 0)


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
def test_nobody_resumes_over_stale_output(
    engine: Make, chunks: Make, indices: Make, policy: str
) -> None:
    # A deeper queue than the engine core's, in which a victim's output is in flight for longer.
    bench = engine(async_scheduling=True, scheduling_policy=policy, num_gpu_blocks=4 + 1)
    bench.add(19, 50)
    bench.add(10, 1)
    bench.schedule()
    bench.add(10, 50)
    assert chunks(bench.schedule()) == [(0, 1), (2, 10)]
    assert indices(bench.schedule().preempted) == [2]
    assert indices(bench.update().finished) == [1]
    bench.add(5)
    # One block is free and would do for request 2; it is passed over, and keeps its place.
    assert chunks(bench.schedule()) == [(0, 1), (3, 5)]
    assert bench.core.waiting.head() is bench.states[2]
    assert indices(bench.update().stale) == [2]
    assert bench.states[2].num_tokens == 11


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
def test_requests_passed_over_keep_their_order(engine: Make, indices: Make, policy: str) -> None:
    bench = engine(async_scheduling=True, scheduling_policy=policy, num_gpu_blocks=6 + 1)
    bench.add(19, 50)
    bench.add(19, 50)
    bench.schedule()
    bench.add(10, 50)
    bench.add(10, 50)
    bench.schedule()
    assert indices(bench.schedule().preempted) == [3, 2]
    assert bench.schedule().preempted == []  # both are passed over
    waiting = [bench.core.waiting.pop() for _ in range(bench.scheduler.num_waiting)]
    assert indices(waiting) == [2, 3]
    assert all(state.in_flight for state in waiting)


def test_a_block_filled_by_decoding_is_cached_when_known(engine: Make) -> None:
    bench = engine(async_scheduling=True, enable_prefix_caching=True)
    state = bench.add(18, 50)
    bench.schedule()
    bench.schedule()  # computes position 18
    bench.update()
    bench.schedule()  # computes position 19: the block is full, but token 19 is not known
    assert state.num_cached_blocks == 1
    bench.update()
    assert state.num_cached_blocks == 1
    bench.schedule()
    assert state.num_cached_blocks == 2


def test_with_blocks_of_one_token_only_known_ones_are_cached(engine: Make) -> None:
    bench = engine(async_scheduling=True, enable_prefix_caching=True, block_size=1)
    state = bench.add(5, 50)
    bench.schedule()
    bench.schedule()
    assert (state.num_computed, state.num_cached_blocks) == (6, 5)
    bench.update()
    bench.schedule()
    assert (state.num_computed, state.num_cached_blocks) == (7, 6)


def test_an_output_caches_what_its_step_computed(engine: Make) -> None:
    bench = engine(async_scheduling=True, enable_prefix_caching=True)
    state = bench.add(18, 3)
    bench.schedule()
    bench.schedule()
    bench.update()
    bench.schedule()
    bench.update()
    assert bench.schedule().total_tokens == 0  # foreseen: no allocation call caches the block
    assert state.num_cached_blocks == 1
    bench.update()
    assert state.status is Status.FINISHED
    assert len(bench.pool.longest_hit(state.block_keys, 9)) == 2
