"""The executor loop: foreseen ends, stop tokens, the slot timeline; alone and in the engine."""

from collections.abc import Callable
from typing import Any

import pytest

from hwmodels.host import HostCosts
from tests.unit.engine.support import NO_HOST, ConstantTimer, ListSource
from twin.engine.clock import Clock
from twin.engine.cluster.pool import pool_of
from twin.engine.gpu import OneStage
from twin.engine.reference import ReferenceEngine
from twin.engine.replica import Replica
from twin.engine.routers import RoundRobin
from twin.request import Request
from twin.scheduling.trtllm import TrtllmScheduler

Make = Callable[..., Any]


def test_a_foreseen_end_costs_no_surplus_step(bench: Make) -> None:
    run = bench(overlap=True)
    run.add(10, 3)
    assert run.steps(4) == [[(0, 10)], [(0, 1)], [(0, 1)], []]
    assert run.states[0].num_output == 3
    assert run.states[0].finish_reason == "length"
    assert not run.scheduler.has_requests()


def test_an_end_at_the_context_limit_is_foreseen(bench: Make) -> None:
    run = bench(overlap=True, max_seq_len=12)
    run.add(10, 99)
    assert run.steps(3) == [[(0, 10)], [(0, 1)], []]
    assert run.states[0].num_output == 2


def test_a_stop_token_is_found_one_step_late_and_its_extra_token_dropped(
    bench: Make, indices: Make
) -> None:
    run = bench(overlap=True)
    run.add(10, 99, stop_after_tokens=2)
    assert run.steps(4) == [[(0, 10)], [(0, 1)], [(0, 1)], []]
    assert run.states[0].num_output == 2
    assert run.states[0].finish_reason == "stop"
    assert [indices(o.delivered) for o in run.outcomes] == [[0], [0], []]
    assert [indices(o.discarded) for o in run.outcomes] == [[], [], [0]]
    # Without overlap nothing is wasted.
    run = bench()
    run.add(10, 99, stop_after_tokens=2)
    assert run.steps(2) == [[(0, 10)], [(0, 1)]]
    assert not run.scheduler.has_requests()


def test_one_whose_last_token_is_in_flight_keeps_slot_and_blocks(bench: Make) -> None:
    run = bench(overlap=True, max_batch_size=1)
    run.add(10, 1)
    run.step()
    assert run.states[0].blocks
    assert run.scheduler.active[0].is_to_complete
    plan = run.schedule()
    assert not plan.total_tokens
    assert run.states[0].blocks
    run.update()
    assert not run.states[0].blocks
    assert run.kv.num_free == run.kv.usable


def test_running_and_waiting_counts(bench: Make) -> None:
    run = bench(num_blocks=4)
    run.add(20, 20)
    run.add(20, 20)
    assert (run.scheduler.num_running, run.scheduler.num_waiting) == (0, 2)
    run.step()
    assert (run.scheduler.num_running, run.scheduler.num_waiting) == (1, 1)
    run.steps(50)
    assert (run.scheduler.num_running, run.scheduler.num_waiting) == (0, 0)


def test_waiting_queue_by_priority_or_first_come(bench: Make, chunks: Make) -> None:
    for queue, first in (("fcfs", [(0, 10)]), ("priority", [(1, 11)])):
        run = bench(waiting_queue=queue, max_batch_size=1)
        run.add(10, priority=1)
        run.add(11, priority=0)
        assert chunks(run.step()) == first


# The whole engine, constant step times.

STEP_S = 1.0
TURNAROUND_S = 0.125


def run_engine(limits: Any, source: ListSource, host: HostCosts = NO_HOST) -> ReferenceEngine:
    clock = Clock()
    replica = Replica(clock, 0, TrtllmScheduler(limits), OneStage(ConstantTimer(STEP_S)), host)
    engine = ReferenceEngine(clock, [pool_of([replica], limits.fits)], RoundRobin(), source, host)
    engine.run()
    return engine


def closed_loop(outputs: list[int], turnaround_s: float, total: int) -> ListSource:
    """One client for each of `outputs`, each asking again `turnaround_s` after its answer."""
    made = len(outputs)

    def react(request: Request, end_s: float, rejected: bool) -> list[Request]:
        nonlocal made
        if made >= total:
            return []
        made += 1
        return [ask(made - 1, end_s + turnaround_s, request.max_tokens)]

    def ask(index: int, arrival_s: float, max_tokens: int) -> Request:
        return Request(index, arrival_s, prompt_tokens=8, max_tokens=max_tokens)

    return ListSource([ask(i, 0.0, tokens) for i, tokens in enumerate(outputs)], react)


def test_first_token_is_rest_of_a_step_a_step_and_the_mixed_step(limits: Make) -> None:
    """Section by section: last token in step k, fetched at the start of iteration k+3."""
    engine = run_engine(limits(overlap=True), closed_loop([7, 40], TURNAROUND_S, 3))
    table, steps = engine.requests.table(), engine.steps.table()
    finished_s, arrived_s = table.finish_s[0], table.arrival_s[2]
    assert arrived_s == finished_s + TURNAROUND_S
    last = int((steps.end_s == finished_s).nonzero()[0][0])
    assert steps.prefill_tokens[last + 1] == steps.prefill_tokens[last + 2] == 0
    assert steps.decode_tokens[last + 1] == steps.decode_tokens[last + 2] == 1  # two idle steps
    assert steps.prefill_tokens[last + 3] == 8
    assert steps.decode_tokens[last + 3] == 1  # mixed
    assert table.scheduled_s[2] == steps.end_s[last + 1]
    rest_s = steps.end_s[last + 1] - arrived_s
    ttft_s = table.first_token_s[2] - arrived_s
    assert rest_s == STEP_S - TURNAROUND_S
    assert ttft_s == rest_s + STEP_S + STEP_S
    assert table.first_token_s[2] == steps.end_s[last + 3]


@pytest.mark.parametrize(("turnaround_s", "idle"), [(0.999, 2), (1.001, 3)])
def test_a_slot_idles_two_steps_if_the_client_answers_within_one(
    limits: Make, turnaround_s: float, idle: int
) -> None:
    engine = run_engine(limits(overlap=True), closed_loop([7, 40], turnaround_s, 3))
    table, steps = engine.requests.table(), engine.steps.table()
    last = int((steps.end_s == table.finish_s[0]).nonzero()[0][0])
    next_prefill = int(steps.prefill_tokens[last + 1 :].nonzero()[0][0])
    assert next_prefill == idle


def test_without_overlap_a_freed_slot_works_in_the_next_step(limits: Make) -> None:
    engine = run_engine(limits(), closed_loop([7, 40], TURNAROUND_S, 3))
    table, steps = engine.requests.table(), engine.steps.table()
    last = int((steps.end_s == table.finish_s[0]).nonzero()[0][0])
    # The client's turnaround falls into step k+1, so the prompt runs in step k+2.
    assert steps.prefill_tokens[last + 1 : last + 3].tolist() == [0, 8]
    assert table.first_token_s[2] - table.arrival_s[2] == 2 * STEP_S - TURNAROUND_S
    # At no turnaround it runs in step k+1.
    engine = run_engine(limits(), closed_loop([7, 40], 0.0, 3))
    table = engine.requests.table()
    assert table.first_token_s[2] - table.arrival_s[2] == STEP_S


def test_host_time_delays_the_first_token_beyond_the_steps(limits: Make) -> None:
    host = HostCosts(0.03125, 0.0, 0.015625, 0.0, 0.0, 0.0, source="test")
    engine = run_engine(limits(overlap=True), closed_loop([7, 40], TURNAROUND_S, 3), host)
    table, steps = engine.requests.table(), engine.steps.table()
    # Back to back on the GPU: launches are ahead, so a step starts where the last one ends.
    assert (steps.start_s[1:-1] == steps.end_s[:-2]).all()
    prefill = int((steps.prefill_tokens == 8).nonzero()[0][-1])
    assert table.first_token_s[2] == steps.end_s[prefill] + host.update_s


def test_batch_wait_adds_its_iterations_to_the_first_token(limits: Make) -> None:
    # The first wave does not wait (nobody generates); later arrivals do, a little under 20 steps.
    plain = run_engine(limits(overlap=True), closed_loop([40, 200], TURNAROUND_S, 4))
    waits = limits(overlap=True, batch_wait_timeout_iters=20, batch_wait_max_tokens_ratio=0.9)
    waiting = run_engine(waits, closed_loop([40, 200], TURNAROUND_S, 4))
    ttft = [
        engine.requests.table().first_token_s - engine.requests.table().arrival_s
        for engine in (plain, waiting)
    ]
    assert ttft[0][:2].tolist() == ttft[1][:2].tolist()
    assert (ttft[1] - ttft[0])[2] == 20 * STEP_S
