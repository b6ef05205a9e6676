"""Relative gains and their intervals."""

import math

import numpy as np
import pytest
from scipy import stats

from twin.search.judging.paired import paired_gain, t975


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 19, 20, 21, 30, 60, 1000])
def test_t_is_students(freedom):
    assert t975(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=6e-4)


def test_no_freedom_is_refused():
    with pytest.raises(ValueError, match="0 degrees"):
        t975(0)


def test_by_hand():
    found = paired_gain([10, 20, 30], [9, 17, 25], "minimize")
    # r = 51/60; residuals b - r a: 0.5, 0, -0.5; sd 0.5
    half = 4.303 * 0.5 / math.sqrt(3) / 20
    assert found.relative == pytest.approx(0.15)
    assert (found.low, found.high) == pytest.approx((0.15 - half, 0.15 + half))
    assert (found.a, found.b, found.pairs) == (20, 17, 3)


def test_direction_turns_the_sign():
    less = paired_gain([10, 12], [11, 13], "minimize")
    more = paired_gain([10, 12], [11, 13], "maximize")
    assert less.relative == pytest.approx(-more.relative)
    assert less.low == pytest.approx(-more.high)


def test_common_noise_cancels():
    noise = np.random.default_rng(3).lognormal(0, 0.5, 8)
    found = paired_gain(noise.tolist(), (0.9 * noise).tolist(), "minimize")
    assert found.high - found.low == pytest.approx(0, abs=1e-12)


def test_nothing_to_be_relative_to():
    assert paired_gain([0, 0], [1, 2], "maximize").relative is None


def test_one_pair_has_no_interval():
    found = paired_gain([2], [1], "minimize")
    assert (found.relative, found.low, found.high) == (0.5, None, None)


@pytest.mark.parametrize(("a", "b"), [([], []), ([1], [1, 2])])
def test_pairs_are_needed(a, b):
    with pytest.raises(ValueError, match="pairs"):
        paired_gain(a, b, "minimize")


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Nineteen of twenty, for as few pairs as a judgement has."""
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(2000):
        traffic = rng.gamma(16, 1 / 16, 5)
        own = rng.normal(1, 0.05, (2, 5))
        found = paired_gain(traffic * own[0], 0.8 * traffic * own[1], "minimize")
        held += found.low <= 0.2 <= found.high
    assert held / 2000 == pytest.approx(0.95, abs=0.015)
