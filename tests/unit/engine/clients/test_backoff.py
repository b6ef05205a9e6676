"""Pauses between attempts, and what bounds retries."""

import numpy as np
import pytest

from twin.engine.clients.backoff import JITTERS, delay_s
from twin.engine.clients.budget import Budget
from twin.engine.clients.rate_limiter import RateLimiter
from twin.workload.clients_spec import ExponentialRetry, FixedRetry, RetryBudget


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_a_fixed_delay_stays(rng):
    spec = FixedRetry(kind="fixed", delay_s=2)
    assert [delay_s(spec, failed, 2.0, rng) for failed in (1, 2, 9)] == [2.0, 2.0, 2.0]


def test_a_growing_delay_grows_to_its_cap(rng):
    spec = ExponentialRetry(kind="exponential", delay_s=1, factor=3, max_delay_s=10, jitter="none")
    assert [delay_s(spec, failed, 0.0, rng) for failed in (1, 2, 3, 4)] == [1, 3, 9, 10]


@pytest.mark.parametrize("name", sorted(JITTERS))
def test_jitter_never_lengthens_a_delay(name, rng):
    spread = [JITTERS[name](4.0, rng) for _ in range(200)]
    least = {"none": 4.0, "full": 0.0, "equal": 2.0}[name]
    assert all(least <= delay <= 4.0 for delay in spread)
    if name != "none":
        assert min(spread) < least + 0.1
        assert max(spread) > 3.9


def test_decorrelated_jitter_follows_the_last_delay(rng):
    spec = ExponentialRetry(kind="exponential", delay_s=1, max_delay_s=20, jitter="decorrelated")
    first = [delay_s(spec, 1, 0.0, rng) for _ in range(200)]
    assert min(first) >= 1
    assert 2.9 < max(first) <= 3
    later = [delay_s(spec, 2, 10.0, rng) for _ in range(200)]
    assert min(later) >= 1
    assert max(later) == 20  # of up to 30


def test_a_budget_stops_at_half_and_comes_back_with_successes():
    budget = Budget(RetryBudget(max_tokens=4, token_ratio=0.5))
    budget.failed()
    assert budget.allows  # 3 of 4
    budget.failed()
    assert not budget.allows  # 2 is not above half
    budget.succeeded()
    assert budget.allows
    for _ in range(20):
        budget.succeeded()
    assert budget.tokens == 4
    for _ in range(20):
        budget.failed()
    assert budget.tokens == 0


def answered(limiter, rate, seconds, start_s=0.0):
    """Let attempts succeed at a rate; return when it is then."""
    for step in range(int(rate * seconds)):
        limiter.succeeded(start_s + step / rate)
    return start_s + seconds


def test_a_rate_limit_is_in_force_from_the_first_failure():
    limiter = RateLimiter()
    now_s = answered(limiter, 20, 5)
    assert limiter.reserve(now_s) == now_s
    limiter.failed(now_s)
    assert limiter.rate == pytest.approx(0.7 * 20, rel=0.05)
    limiter.failed(now_s)
    assert limiter.rate == pytest.approx(0.49 * 20, rel=0.05)


def test_reserved_places_stand_a_rate_apart():
    limiter = RateLimiter()
    now_s = answered(limiter, 20, 5)
    for _ in range(50):
        limiter.failed(now_s)
    assert limiter.rate == 0.5
    first_s = limiter.reserve(now_s)
    places = [limiter.reserve(now_s) for _ in range(3)]
    np.testing.assert_allclose(np.diff([first_s, *places]), 2.0)


def test_the_rate_rises_again_with_successes():
    limiter = RateLimiter()
    now_s = answered(limiter, 20, 5)
    limiter.failed(now_s)
    low = limiter.rate
    answered(limiter, 20, 6, now_s)
    assert limiter.rate > low
    assert limiter.rate <= 2 * 20 * 1.05
