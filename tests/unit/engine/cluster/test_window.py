"""A stabilisation window: what all recommendations of the last seconds agree on."""

import random

import pytest

from twin.engine.cluster.autoscaler import _Window


@pytest.mark.parametrize(("sign", "extreme"), [(1, max), (-1, min)])
@pytest.mark.parametrize("seconds", [0.0, 0.3, 5.0])
def test_it_is_the_extreme_of_all_in_the_window(seconds, sign, extreme):
    rng = random.Random(0)
    window, past = _Window(seconds, sign), []
    for tick in range(1, 400):
        now = tick * 0.1
        past.append((now, rng.randrange(6)))
        wanted = extreme(number for at, number in past if at >= now - seconds)
        assert window.after(now, past[-1][1]) == wanted


def test_a_long_window_of_equal_recommendations_keeps_one():
    window = _Window(1e8, 1)
    for tick in range(1000):
        window.after(float(tick), 3)
    assert len(window._kept) == 1
