"""The engine core's time recurrences, by hand."""

import math

import pytest

from hwmodels.host import HostCosts
from tests.unit.engine import support
from twin.request import Request

HOST = HostCosts(
    schedule_s=0.125,
    schedule_per_seq_s=0.0,
    update_s=0.0625,
    update_per_seq_s=0.0,
    wake_s=0.03125,
    api_s=0.0,
    source="test",
)
H, U, C, D = HOST.schedule_s, HOST.update_s, HOST.wake_s, 1.0


def one(arrival_s=2.0, prompt=10, output=3):
    return Request(index=0, arrival_s=arrival_s, prompt_tokens=prompt, max_tokens=output)


def test_synchronous_token_times_of_a_lone_request():
    engine, _, _ = support.run(support.ListSource([one()]), step_s=D, host=HOST)
    table = engine.requests.table()
    step = H + D + C + U
    assert table.first_token_s[0] == 2.0 + step
    assert list(engine.requests.itl_s) == [step, step]
    assert table.finish_s[0] == 2.0 + 3 * step
    assert table.scheduled_s[0] == 2.0


def test_asynchronous_token_times_of_a_lone_request():
    engine, _, _ = support.run(
        support.ListSource([one()]), step_s=D, host=HOST, async_scheduling=True
    )
    s0 = 2.0
    l0 = s0 + H
    e0 = l0 + D
    l1 = l0 + H  # nothing to wait for: the second step is scheduled at once
    e1 = max(l1, e0) + D
    v0 = max(l1, e0 + C) + U
    l2 = v0 + H
    e2 = max(l2, e1) + D
    v1 = max(l2, e1 + C) + U
    l3 = v1 + H  # an empty step: the end by length is foreseen
    v2 = max(l3, e2 + C) + U
    table = engine.requests.table()
    assert table.first_token_s[0] == v0
    assert list(engine.requests.itl_s) == [v1 - v0, v2 - v1]
    assert table.finish_s[0] == v2
    # Three steps ran tokens; the empty ones are not rows.
    assert len(engine.steps.table()) == 3


def test_a_stop_token_costs_one_wasted_step():
    foreseen = support.ListSource([one()])
    unforeseen = support.ListSource(
        [Request(index=0, arrival_s=2.0, prompt_tokens=10, max_tokens=99, stop_after_tokens=3)]
    )
    by_length, _, _ = support.run(foreseen, async_scheduling=True)
    by_stop, _, _ = support.run(unforeseen, async_scheduling=True)
    assert by_length.requests.table().output_tokens[0] == 3
    assert by_stop.requests.table().output_tokens[0] == 3
    assert len(by_length.steps.table()) == 3
    assert len(by_stop.steps.table()) == 4


def test_busy_asynchronous_server_adds_a_step_to_the_first_token():
    # One long decode keeps the queue full; a second request arriving mid-step waits for the
    # step in flight, the one queued behind it, and its own.
    long = Request(index=0, arrival_s=0.0, prompt_tokens=8, max_tokens=50)
    late = Request(index=1, arrival_s=10.5, prompt_tokens=8, max_tokens=2)
    engine, _, _ = support.run(support.ListSource([long, late]), async_scheduling=True)
    ttft = engine.requests.table().first_token_s[1] - 10.5
    assert 2.0 <= ttft <= 3.0
    sync, _, _ = support.run(support.ListSource([long, late]), async_scheduling=False)
    assert 1.0 <= sync.requests.table().first_token_s[1] - 10.5 <= 2.0


def test_arrival_at_the_very_instant_of_a_schedule_is_seen_by_it():
    long = Request(index=0, arrival_s=0.0, prompt_tokens=8, max_tokens=10)
    late = Request(index=1, arrival_s=3.0, prompt_tokens=8, max_tokens=2)
    engine, _, _ = support.run(support.ListSource([long, late]))
    assert engine.requests.table().scheduled_s[1] == 3.0
    assert engine.requests.table().first_token_s[1] == 4.0


def test_api_time_delays_the_engine_not_the_arrival():
    host = HostCosts(0.0, 0.0, 0.0, 0.0, 0.0, api_s=0.25, source="test")
    engine, _, _ = support.run(support.ListSource([one()]), host=host)
    table = engine.requests.table()
    assert table.arrival_s[0] == 2.0
    assert table.scheduled_s[0] == 2.25
    assert table.first_token_s[0] == 3.25


def test_per_sequence_host_time_counts():
    host = HostCosts(0.0, 0.125, 0.0, 0.0625, 0.0, 0.0, source="test")
    requests = [Request(index=i, arrival_s=0.0, prompt_tokens=4, max_tokens=1) for i in range(4)]
    engine, _, _ = support.run(support.ListSource(requests), host=host)
    assert engine.requests.table().first_token_s[0] == 4 * 0.125 + 1.0 + 4 * 0.0625


def test_round_robin_and_rejection():
    requests = [
        Request(index=i, arrival_s=0.0, prompt_tokens=600 if i == 1 else 8, max_tokens=2)
        for i in range(5)
    ]
    source = support.ListSource(requests)
    engine, _, _ = support.run(source, replicas=2)
    table = engine.requests.table()
    assert table.replica.tolist() == [0, 1, 0, 1, 0]
    assert table.outcome.tolist() == [0, 1, 0, 0, 0]
    assert math.isnan(table.first_token_s[1])
    assert sorted(index for index, _, _ in source.ends) == [0, 1, 2, 3, 4]


def test_a_long_chain_of_rejections_is_a_loop_not_a_recursion():
    def react(request, end_s, rejected):
        assert rejected
        if request.index >= 20_000:
            return []
        return [Request(index=request.index + 1, arrival_s=end_s, prompt_tokens=999, max_tokens=1)]

    first = Request(index=0, arrival_s=0.0, prompt_tokens=999, max_tokens=1)
    engine, _, _ = support.run(support.ListSource([first], react))
    assert engine.requests.table().outcome.tolist() == [1] * 20_001


def test_a_request_that_follows_an_answer_at_once_is_in_the_next_step():
    def react(request, end_s, rejected):
        if request.index:
            return []
        return [Request(index=1, arrival_s=end_s, prompt_tokens=8, max_tokens=1)]

    first = Request(index=0, arrival_s=0.0, prompt_tokens=8, max_tokens=1)
    engine, _, _ = support.run(support.ListSource([first], react))
    assert engine.requests.table().first_token_s.tolist() == [1.0, 2.0]


def test_horizon_leaves_unfinished_requests():
    requests = [Request(index=i, arrival_s=i * 1.0, prompt_tokens=8, max_tokens=4) for i in (0, 1)]
    engine, _, clock = support.run(support.ListSource(requests), horizon_s=4.5)
    assert engine.requests.table().outcome.tolist() == [0, 2]
    assert clock.now == pytest.approx(4.5)


def test_idle_server_starts_again():
    requests = [
        Request(index=i, arrival_s=100.0 * i, prompt_tokens=8, max_tokens=2) for i in range(3)
    ]
    for asynchronous in (False, True):
        engine, _, _ = support.run(support.ListSource(requests), async_scheduling=asynchronous)
        assert engine.requests.table().first_token_s.tolist() == [1.0, 101.0, 201.0]
