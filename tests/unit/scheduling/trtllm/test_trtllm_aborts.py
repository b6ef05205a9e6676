"""TensorRT-LLM: requests that their clients cancel."""

from collections.abc import Callable
from typing import Any

from twin.request import Status

Make = Callable[..., Any]


def test_one_not_fetched_leaves_at_once(bench: Make) -> None:
    made = bench(max_batch_size=1)
    made.add(20)
    waiting = made.add(20)
    made.schedule()
    assert made.scheduler.abort(waiting)
    assert waiting.status is Status.FINISHED
    assert made.scheduler.num_waiting == 0
    assert not made.scheduler.abort(waiting)


def test_a_fetched_one_ends_when_the_step_in_flight_is_processed(bench: Make) -> None:
    made = bench()
    state, other = made.add(20), made.add(20)
    plan = made.schedule()
    assert made.scheduler.abort(state)
    assert state.status is Status.RUNNING
    outcome = made.scheduler.update(plan)
    assert (outcome.delivered, outcome.finished, outcome.discarded) == ([other], [], [state])
    assert (state.status, state.finish_reason) == (Status.FINISHED, "abort")
    assert made.scheduler.free_blocks == made.scheduler.usable_blocks - 2
    assert made.scheduler.num_running == 1


def test_one_that_holds_nothing_yet(bench: Make) -> None:
    made = bench(max_num_tokens=20, enable_chunked_prefill=False)
    first, second = made.add(20), made.add(20)
    plan = made.schedule()
    assert [state for state, _ in plan.scheduled] == [first]
    made.scheduler.abort(second)
    made.scheduler.update(plan)
    assert second.status is Status.FINISHED
    assert made.scheduler.num_waiting == 0
    assert made.scheduler.num_running == 1


def test_with_overlap_the_next_step_runs_for_nobody(bench: Make) -> None:
    made = bench(overlap=True)
    state = made.add(20)
    first = made.schedule()
    made.scheduler.abort(state)
    second = made.schedule()
    assert [each for each, _ in second.scheduled] == [state]
    assert made.scheduler.update(first).discarded == [state]
    assert made.scheduler.free_blocks == made.scheduler.usable_blocks
    assert made.scheduler.update(second).discarded == [state]
    assert not made.scheduler.has_unfinished()


def test_one_that_ends_anyway(bench: Make) -> None:
    made = bench()
    state = made.add(20, 1)
    plan = made.schedule()
    made.scheduler.abort(state)
    outcome = made.scheduler.update(plan)
    assert (outcome.delivered, outcome.finished, outcome.discarded) == ([], [], [state])
    assert state.finish_reason == "abort"
    assert made.scheduler.free_blocks == made.scheduler.usable_blocks


def test_reset(bench: Make) -> None:
    made = bench(max_batch_size=2)
    first, second, waiting = made.add(20), made.add(20), made.add(20)
    made.schedule()
    made.scheduler.abort(second)
    assert made.scheduler.reset() == [first, waiting]
    assert not made.scheduler.has_unfinished()
    assert made.scheduler.free_blocks == made.scheduler.usable_blocks
