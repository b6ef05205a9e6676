"""Clients at a server whose steps take a second."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.engine.support import NO_HOST, SCHEDULERS, ConstantTimer, ListSource, limits
from twin.engine.clients.layer import ClientLayer
from twin.engine.clock import URGENT, Clock
from twin.engine.cluster.pool import pool_of
from twin.engine.gpu import OneStage
from twin.engine.reference import ReferenceEngine
from twin.engine.replica import Replica
from twin.engine.result import FAILED, FINISHED, REJECTED, TIMED_OUT
from twin.engine.routers import RoundRobin
from twin.request import Request
from twin.workload.clients_spec import ClientsSpec

FIXED = {"kind": "fixed", "max_attempts": 3, "delay_s": 0.5}


def serve(clients, *asks, crash_s=None, host=NO_HOST, **policy):
    """Run requests of (arrival, prompt, tokens); return (loop, columns, source)."""
    clock = Clock()
    policy = limits(**{"max_num_seqs": 1, **policy})
    core = Replica(clock, 0, SCHEDULERS["vllm"](policy), OneStage(ConstantTimer(1.0)), NO_HOST)
    source = ListSource([Request(i, *ask) for i, ask in enumerate(asks)])
    layer = ClientLayer(ClientsSpec(**clients), source, clock, np.random.default_rng(0))
    loop = ReferenceEngine(clock, [pool_of([core], policy.fits)], RoundRobin(), layer, host)
    layer.join(loop)
    if crash_s is not None:

        def crash():
            for state in core.crash():
                loop.fail(state.request)

        clock.call_at(crash_s, crash, URGENT)
    loop.run()
    assert loop._open == 0
    return loop, layer.columns(), source


def test_who_waits_in_vain_tries_again():
    # The second waits behind ten seconds of the first.
    loop, columns, source = serve(
        {"ttft_timeout_s": 2.0, "retry": FIXED}, (0.0, 4, 10), (0.0, 4, 2)
    )
    assert loop.requests.outcome == [FINISHED, TIMED_OUT, TIMED_OUT, TIMED_OUT]
    assert columns["attempt"].tolist() == [1, 1, 2, 3]
    assert columns["origin"].tolist() == [0, 1, 1, 1]
    arrivals = [request.arrival_s for request in loop.requests.requests]
    assert arrivals == [0.0, 0.0, 2.5, 5.0]
    assert loop.requests.finish_s == [10.0, 2.0, 4.5, 7.0]
    # The workload hears once of each, of the second at its last attempt.
    assert sorted(end[:2] for end in source.ends) == [(0, 10.0), (1, 7.0)]


def test_the_last_attempt_may_succeed():
    loop, _, source = serve({"ttft_timeout_s": 2.0, "retry": FIXED}, (0.0, 4, 5), (0.0, 4, 2))
    assert loop.requests.outcome == [FINISHED, TIMED_OUT, TIMED_OUT, FINISHED]
    assert sorted(end[:2] for end in source.ends) == [(0, 5.0), (1, 7.0)]


@pytest.mark.parametrize("aborts", [True, False])
def test_a_server_that_does_not_hear_of_it_goes_on(aborts):
    loop, columns, _ = serve(
        {"timeout_s": 3.0, "abort_on_disconnect": aborts}, (0.0, 4, 10), (3.5, 4, 1)
    )
    assert loop.requests.outcome[0] == TIMED_OUT
    assert loop.requests.finish_s[0] == 3.0
    if aborts:
        assert loop.requests.output_tokens[0] == 2
        assert columns["left_s"][0] == 3.0
        assert loop.requests.outcome[1] == FINISHED
    else:
        assert loop.requests.output_tokens[0] == 10
        assert columns["left_s"][0] == 10.0
        assert loop.requests.outcome[1] == TIMED_OUT


@pytest.mark.parametrize("aborts", [True, False])
def test_who_goes_before_the_engine_hears_of_the_request(aborts):
    # A second passes in the server before the engine gets it.
    loop, columns, source = serve(
        {"timeout_s": 0.25, "abort_on_disconnect": aborts, "retry": {**FIXED, "max_attempts": 2}},
        (0.0, 4, 3),
        host=replace(NO_HOST, api_s=1.0),
    )
    assert loop.requests.outcome == [TIMED_OUT, TIMED_OUT]
    assert loop.requests.finish_s == [0.25, 1.0]
    assert [end[:2] for end in source.ends] == [(0, 1.0)]
    if aborts:
        assert loop.requests.output_tokens == [0, 0]
        assert columns["left_s"].tolist() == [1.0, 1.75]
    else:
        assert loop.requests.output_tokens == [3, 3]
        assert columns["left_s"].tolist() == [4.0, 7.0]


def test_a_retry_with_a_key_that_is_given_up_under_way_asks_for_nothing():
    loop, columns, _ = serve(
        {
            "timeout_s": 0.25,
            "abort_on_disconnect": False,
            "retry": {**FIXED, "max_attempts": 2},
            "idempotency": "key",
        },
        (0.0, 4, 3),
        host=replace(NO_HOST, api_s=1.0),
    )
    assert loop.requests.outcome == [TIMED_OUT, TIMED_OUT]
    assert loop.requests.output_tokens == [3, 0]
    assert columns["left_s"].tolist() == [4.0, 1.75]


def key(idempotency):
    # Of six tokens the first three come before the client loses patience.
    return serve(
        {
            "timeout_s": 4.0,
            "abort_on_disconnect": False,
            "retry": {"kind": "fixed", "delay_s": 0.5},
            "idempotency": idempotency,
        },
        (0.0, 4, 6),
        max_num_seqs=4,
    )


def test_with_a_key_a_retry_gets_the_answer_under_way():
    loop, columns, source = key("key")
    assert loop.requests.outcome == [TIMED_OUT, FINISHED]
    assert columns["served_by"].tolist() == [0, 0]
    assert loop.requests.finish_s == [4.0, 6.0]
    assert loop.requests.first_token_s == [1.0, 4.5]
    assert loop.requests.output_tokens == [6, 6]
    assert len(loop.steps) == 6
    assert [end[:2] for end in source.ends] == [(0, 6.0)]


def test_without_a_key_it_is_served_twice():
    loop, columns, _ = key("none")
    assert loop.requests.outcome == [TIMED_OUT, TIMED_OUT, TIMED_OUT]
    assert columns["served_by"].tolist() == [0, 1, 2]
    assert loop.requests.output_tokens == [6, 6, 6]


def test_with_a_key_an_answer_found_ready_comes_at_once():
    loop, columns, _ = serve(
        {
            "timeout_s": 4.0,
            "abort_on_disconnect": False,
            "retry": {"kind": "fixed", "delay_s": 10.0},
            "idempotency": "key",
        },
        (0.0, 4, 6),
    )
    assert loop.requests.outcome == [TIMED_OUT, FINISHED]
    assert loop.requests.finish_s == [4.0, 14.0]
    assert columns["served_by"].tolist() == [0, 0]


def test_who_loses_its_server_tries_again():
    loop, columns, _ = serve({"retry": FIXED}, (0.0, 4, 4), crash_s=2.5)
    assert loop.requests.outcome == [FAILED, FINISHED]
    assert loop.requests.finish_s == [2.5, 7.0]
    assert columns["attempt"].tolist() == [1, 2]


def test_too_long_is_too_long_however_often_it_is_asked():
    loop, columns, _ = serve({"retry": FIXED}, (0.0, 4000, 4))
    assert loop.requests.outcome == [REJECTED]
    assert columns["attempt"].tolist() == [1]


def test_without_a_budget_left_nobody_tries_again():
    # Of four, two may fail before half of the budget is gone.
    asks = [(0.0, 4, 30)] + [(0.1 * n, 4, 1) for n in range(4)]
    loop, columns, _ = serve(
        {
            "ttft_timeout_s": 1.5,
            "retry": {"kind": "fixed", "max_attempts": 2, "delay_s": 0.0},
            "budget": {"max_tokens": 4, "token_ratio": 0.1},
        },
        *asks,
    )
    assert (columns["attempt"] == 2).sum() == 1
    assert loop.requests.outcome[0] == FINISHED
