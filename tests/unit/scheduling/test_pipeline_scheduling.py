"""What several pipeline stages change, step by step."""

from collections.abc import Callable
from typing import Any

import pytest

from twin.errors import InputError
from twin.request import Status

Make = Callable[..., Any]


@pytest.mark.parametrize(
    ("stages", "asynchronous", "depth"),
    [(1, False, 1), (1, True, 2), (2, False, 2), (2, True, 3), (4, False, 4), (4, True, 5)],
)
def test_as_many_steps_in_flight_as_stages(
    engine: Make, stages: int, asynchronous: bool, depth: int
) -> None:
    bench = engine(pipeline_stages=stages, async_scheduling=asynchronous)
    assert bench.scheduler.queue_depth == depth


def test_no_stage_is_an_input_error(engine: Make) -> None:
    with pytest.raises(InputError, match="pipeline_stages is 0"):
        engine(pipeline_stages=0)


def test_a_request_in_flight_is_left_alone(engine: Make, chunks: Make) -> None:
    bench = engine(pipeline_stages=2)
    bench.add(20)
    assert chunks(bench.schedule()) == [(0, 20)]
    bench.add(30)
    assert chunks(bench.schedule()) == [(1, 30)]  # step 0 has not come back
    assert bench.update().delivered == [bench.states[0]]
    assert chunks(bench.schedule()) == [(0, 1)]
    bench.update()
    assert chunks(bench.schedule()) == [(1, 1)]


def test_chunks_of_one_prompt_follow_each_other(engine: Make, chunks: Make) -> None:
    bench = engine(pipeline_stages=3, max_num_batched_tokens=10)
    state = bench.add(25)
    assert [chunks(bench.schedule()) for _ in range(3)] == [[(0, 10)], [(0, 10)], [(0, 5)]]
    assert state.in_flight == 25
    assert bench.update().delivered == bench.update().delivered == []
    assert bench.update().delivered == [state]
    assert (state.in_flight, state.placeholders, state.num_output) == (0, 0, 1)


def test_asynchronously_a_request_comes_up_every_so_many_steps(engine: Make, chunks: Make) -> None:
    bench = engine(pipeline_stages=3, async_scheduling=True)
    bench.add(20)
    plans = [chunks(bench.step()) for _ in range(10)]
    assert [bool(plan) for plan in plans] == [index % 3 == 0 for index in range(10)]


def test_asynchronously_the_next_token_is_scheduled_before_the_last_is_known(
    engine: Make, chunks: Make
) -> None:
    bench = engine(pipeline_stages=2, async_scheduling=True)
    state = bench.add(20)
    assert chunks(bench.schedule()) == [(0, 20)]
    assert chunks(bench.schedule()) == []
    assert chunks(bench.schedule()) == [(0, 1)]
    assert (state.placeholders, state.num_output) == (2, 0)


def test_a_victim_in_flight_delivers_its_stale_token(
    engine: Make, chunks: Make, indices: Make
) -> None:
    """Synchronous: request 1 loses its blocks while its first token is being computed."""
    bench = engine(pipeline_stages=2, num_gpu_blocks=3 + 1, max_num_batched_tokens=20)
    bench.add(20)
    bench.schedule()
    victim = bench.add(10)
    assert chunks(bench.schedule()) == [(1, 10)]
    bench.update()
    plan = bench.schedule()
    assert (chunks(plan), indices(plan.preempted)) == ([(0, 1)], [1])
    assert (victim.in_flight, victim.num_computed) == (10, 0)
    assert chunks(bench.schedule()) == []  # passed over: its output is on the way
    outcome = bench.update()
    assert (indices(outcome.delivered), indices(outcome.stale)) == ([1], [1])
    assert (victim.num_tokens, victim.in_flight, victim.status) == (11, 0, Status.PREEMPTED)


def test_synchronous_stages_leave_no_placeholders_and_cache_once(engine: Make) -> None:
    bench = engine(pipeline_stages=2, enable_prefix_caching=True)
    state = bench.add(18, 5)
    bench.schedule()
    bench.update()
    bench.schedule()
    bench.update()
    assert (state.num_computed, state.num_cached_blocks) == (19, 1)
    bench.schedule()
    assert (state.num_computed, state.num_cached_blocks) == (20, 2)
    assert bench.update().delivered == [state]
    assert state.placeholders == 0
