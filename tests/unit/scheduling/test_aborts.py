"""vLLM: requests that their clients give up."""

from collections.abc import Callable
from typing import Any

import pytest

from twin.request import Status

Make = Callable[..., Any]


def test_a_waiting_request_leaves_the_queue(engine: Make, chunks: Make) -> None:
    bench = engine(max_num_seqs=1)
    bench.add(20)
    waiting = bench.add(20)
    bench.schedule()
    assert bench.scheduler.abort(waiting)
    assert bench.scheduler.num_waiting == 0
    assert (waiting.status, waiting.finish_reason) == (Status.FINISHED, "abort")
    bench.update()
    plan = bench.schedule()
    assert chunks(plan) == [(0, 1)]
    assert plan.finished_sent == [waiting]


def test_blocks_of_a_running_request_are_free_at_once(engine: Make) -> None:
    bench = engine()
    state = bench.add(25)
    bench.schedule()
    assert bench.pool.num_free == bench.pool.usable - 3
    assert bench.scheduler.abort(state)
    assert bench.pool.num_free == bench.pool.usable
    assert bench.scheduler.num_running == 0
    assert bench.scheduler.has_requests()  # the worker has to be told
    outcome = bench.update()
    assert (outcome.delivered, outcome.finished, outcome.discarded) == ([], [], [state])
    assert state.num_output == 0
    assert bench.schedule().finished_sent == [state]
    assert not bench.scheduler.has_requests()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_others_keep_their_tokens(engine: Make, asynchronous: bool) -> None:
    bench = engine(async_scheduling=asynchronous)
    first, second = bench.add(20), bench.add(20)
    bench.schedule()
    if asynchronous:
        bench.schedule()
    bench.scheduler.abort(first)
    outcome = bench.update()
    assert (outcome.delivered, outcome.discarded) == ([second], [first])
    bench.schedule()
    outcome = bench.update()
    assert outcome.delivered == [second]
    assert (first.num_output, second.num_output) == (0, 2)


def test_one_that_ended_cannot_be_given_up(engine: Make) -> None:
    bench = engine()
    state = bench.add(20, 1)
    bench.schedule()
    bench.update()
    assert state.finish_reason == "length"
    assert not bench.scheduler.abort(state)
    assert state.finish_reason == "length"
    again = bench.add(20, 1)
    assert bench.scheduler.abort(again)
    assert not bench.scheduler.abort(again)


def test_a_preempted_request_with_a_token_in_flight(engine: Make) -> None:
    bench = engine(num_gpu_blocks=6, max_model_len=40, async_scheduling=True)
    kept, victim = bench.add(20), bench.add(20)
    bench.schedule()
    while victim.status is not Status.PREEMPTED:
        bench.schedule()
        if victim.status is not Status.PREEMPTED:
            bench.update()
    assert bench.scheduler.abort(victim)
    assert bench.scheduler.num_waiting == 0
    while bench.in_flight:
        assert bench.update().delivered == [kept]
    assert not victim.in_flight


def test_a_reset_scheduler_is_as_new_but_for_its_counters(engine: Make) -> None:
    bench = engine(max_num_seqs=1, enable_prefix_caching=True)
    running, waiting = bench.add(20, shared=(7, 20)), bench.add(20, shared=(7, 20))
    bench.schedule()
    scheduler = bench.scheduler
    assert scheduler.reset() == [running, waiting]
    assert not scheduler.has_requests()
    assert scheduler.free_blocks == scheduler.usable_blocks
    assert scheduler.prefix.queries == 20
    later = bench.add(20, shared=(7, 20))
    plan = scheduler.schedule()
    assert plan.admitted == [(later, 0)]
    assert scheduler.prefix.queries == 40
