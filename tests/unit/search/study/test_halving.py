"""Which candidates are seen on more of the traffic."""

from types import SimpleNamespace

import pytest

from twin.search.evaluation import Evaluation
from twin.search.study.halving import goes_on, standing


def others(*values):
    return [
        SimpleNamespace(number=at, user_attrs={"rungs": [[0.0, value]]})
        for at, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("known", "own", "on"),
    [
        ((), 9.0, True),  # the first one has nobody to lose against
        ((1.0,), 2.0, False),
        ((1.0,), 1.0, True),  # a tie with the best
        ((1.0, 2.0, 3.0, 4.0), 1.5, False),  # of five one goes on
        ((1.0, 2.0, 3.0, 4.0, 5.0), 1.5, True),  # of six two
    ],
)
def test_the_best_third_goes_on(known, own, on):
    assert goes_on([[0.0, own]], 99, others(*known)) is on


def test_only_those_that_came_as_far_are_compared():
    assert goes_on([[0.0, 5.0], [0.0, 5.0]], 99, others(1.0, 1.0, 1.0))


def test_own_earlier_attempt_is_no_rival():
    assert goes_on([[0.0, 5.0]], 0, others(1.0)[:1])


def test_broken_limits_come_before_the_objective():
    keeps = Evaluation({}, {"goodput_per_gpu_hour": 1.0}, {"ttft_s": -0.1})
    breaks = Evaluation({}, {"goodput_per_gpu_hour": 9.0}, {"ttft_s": 0.2, "tpot_s": -1.0})
    assert standing(keeps, "goodput_per_gpu_hour") < standing(breaks, "goodput_per_gpu_hour")
    assert standing(breaks, "goodput_per_gpu_hour") == [0.2, -9.0]
