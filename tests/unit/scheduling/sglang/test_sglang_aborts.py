"""SGLang: requests that their clients give up."""

from collections.abc import Callable
from typing import Any

from twin.request import Status

Make = Callable[..., Any]


def test_a_waiting_request_leaves_at_once(engine: Make) -> None:
    bench = engine(max_running_requests=1)
    bench.add(20)
    waiting = bench.add(20)
    bench.turn()
    assert bench.scheduler.abort(waiting)
    assert waiting.status is Status.FINISHED
    assert bench.scheduler.num_waiting == 0
    assert bench.scheduler.num_running == 1
    assert not bench.scheduler.abort(waiting)


def test_a_running_request_computes_until_its_next_result(engine: Make) -> None:
    bench = engine(disable_radix_cache=True)
    state = bench.add(20)
    bench.turn()
    assert bench.outcome.delivered == [state]
    assert bench.scheduler.abort(state)
    assert state.status is Status.RUNNING
    assert bench.scheduler.has_unfinished()
    launch = bench.turn()
    assert [job.state for job in launch.decode] == [state]
    outcome = bench.outcome
    assert (outcome.delivered, outcome.finished, outcome.discarded) == ([], [], [state])
    assert (state.status, state.finish_reason) == (Status.FINISHED, "abort")
    assert bench.scheduler.free_blocks == bench.scheduler.usable_blocks
    assert not bench.scheduler.has_unfinished()


def test_with_overlap_one_more_step_runs_for_nobody(engine: Make) -> None:
    bench = engine(overlap=True)
    state, other = bench.add(20), bench.add(20)
    bench.turn()  # the prefill is launched
    bench.scheduler.abort(state)
    launch = bench.turn()  # a decode of both is launched, then the prefill is processed
    assert {job.state for job in launch.decode} == {state, other}
    assert (bench.outcome.delivered, bench.outcome.discarded) == ([other], [state])
    launch = bench.turn()
    assert [job.state for job in launch.decode] == [other]
    assert (bench.outcome.delivered, bench.outcome.discarded) == ([other], [state])


def test_what_it_computed_stays_cached(engine: Make) -> None:
    bench = engine()
    state = bench.add(40, shared=(7, 40))
    bench.turn()
    bench.scheduler.abort(state)
    bench.turn()
    later = bench.add(40, shared=(7, 40))
    bench.turn()
    assert later.cached_tokens == 39


def test_reset(engine: Make) -> None:
    bench = engine(max_running_requests=2)
    first, second, waiting = bench.add(20), bench.add(20), bench.add(20)
    bench.turn()
    bench.scheduler.abort(second)
    assert bench.scheduler.reset() == [first, waiting]
    assert not bench.scheduler.has_unfinished()
    assert not bench.scheduler.has_requests()
    assert bench.scheduler.free_blocks == bench.scheduler.usable_blocks
