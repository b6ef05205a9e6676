"""Clients who time out and try again."""

import random

import numpy as np
import pytest

from tests.properties.chaos import simulate_in_chaos
from tests.properties.random_scenarios import random_clients, random_scenario
from tests.properties.test_aborts_and_crashes import assert_same
from twin.engine import simulate
from twin.engine.result import FAILED, FINISHED, REJECTED, TIMED_OUT, UNFINISHED
from twin.load import scenario_from


def scenario_of(seed):
    clients = random_clients(random.Random(f"impatient {seed}"), surely=True)
    return scenario_from({**random_scenario(seed), "clients": clients})


def check_attempts(result, clients):
    """Attempts of a request follow each other, and only the last may succeed."""
    requests, retry = result.requests, clients.retry
    rows = np.arange(len(requests))
    first = requests.attempt == 1
    np.testing.assert_array_equal(requests.origin[first], rows[first])
    assert (requests.attempt[requests.origin] == 1).all()
    most = getattr(retry, "max_attempts", 1)
    assert requests.attempt.max(initial=1) <= most
    for origin in rows[first]:
        mine = rows[requests.origin == origin]
        np.testing.assert_array_equal(requests.attempt[mine], np.arange(1, mine.size + 1))
        outcomes = requests.outcome[mine]
        assert not set(outcomes[:-1]) & {FINISHED, UNFINISHED}
        # An attempt begins after the one before has failed.
        assert (requests.finish_s[mine][:-1] <= requests.arrival_s[mine][1:]).all()
    timed_out = requests.outcome == TIMED_OUT
    waited_s = (requests.finish_s - requests.arrival_s)[timed_out]
    patience_s = {clients.timeout_s, clients.ttft_timeout_s} - {None}
    assert all(min(abs(w - p) for p in patience_s) < 1e-9 for w in waited_s)
    done = requests.outcome == FINISHED
    if clients.timeout_s is not None:
        assert ((requests.finish_s - requests.arrival_s)[done] < clients.timeout_s).all()
    if clients.ttft_timeout_s is not None:
        # Who is sent to another replica amid an answer gets a first token once more.
        once = done & (requests.requeues[requests.served_by] == 0)
        ttft_s = (requests.first_token_s - requests.arrival_s)[once]
        assert (ttft_s < clients.ttft_timeout_s).all()


@pytest.mark.parametrize("seed", range(60))
def test_both_engines_take_clients_alike(seed):
    scenario = scenario_of(seed)
    plain, fast = simulate(scenario, engine="reference"), simulate(scenario, engine="fast")
    assert_same(plain, fast)
    check_attempts(fast, scenario.file.clients)


@pytest.mark.parametrize("seed", range(60, 90))
def test_amid_crashes(seed, monkeypatch):
    scenario = scenario_of(seed)
    dice = seed, 0.1, 0.3
    plain, struck, _ = simulate_in_chaos(scenario, "reference", monkeypatch, dice)
    fast, also, loop = simulate_in_chaos(scenario, "fast", monkeypatch, dice)
    assert struck == also
    assert_same(plain, fast)
    check_attempts(fast, scenario.file.clients)
    if scenario.file.horizon_s is None:
        # A cluster that stays down keeps its queue for ever.
        assert loop._open == len(loop.dispatcher.queue)
        if not loop.dispatcher.queue:
            assert set(fast.requests.outcome) <= {FINISHED, REJECTED, FAILED, TIMED_OUT}
