import math

import pytest

from twin.request import Request, RequestState
from twin.step import StepPlan
from twin.telemetry.pool.recomputation import Recomputation, stalled_s


class _PerToken:
    """Every token takes a millisecond, and a step one more."""

    def time(self, shape):
        return type("Time", (), {"seconds": 1e-3 * (1 + shape.num_tokens)})


class _Run:
    """Steps of one request, told as a scheduler would."""

    def __init__(self):
        self.state = RequestState(Request(0, 0.0, 20, 10))
        self.watch, self.calls = Recomputation(), 0

    def step(self, tokens, *, lost=False, found=0, beside=0):
        plan = StepPlan(self.calls)
        self.calls += 1
        if lost:
            self.state.num_computed = 0
            self.state.preemptions += 1
            plan.preempted.append(self.state)
        self.state.num_computed += found + tokens
        if tokens:
            plan.scheduled.append((self.state, tokens))
        if beside:
            other = RequestState(Request(1, 0.0, beside, 1), num_computed=beside)
            plan.scheduled.append((other, beside))
        plan.total_tokens = tokens + beside
        self.watch(0, plan)


def _when(step):
    return float(step[1]), step[1] + 0.5


def test_what_lies_below_the_length_before_counts():
    run = _Run()
    run.step(20)
    run.step(1)
    run.step(0, lost=True, beside=5)
    run.step(15)
    run.step(8)
    (lost,) = run.watch.preemptions
    assert (lost.step, lost.reached_tokens) == ((0, 2), 21)
    assert lost.recomputed_tokens == 21  # 15 and 6 of 8: the other two are new
    assert stalled_s(lost, _when) == 4.5 - 2


def test_what_the_cache_still_holds_is_not_computed_again():
    run = _Run()
    run.step(20)
    run.step(0, lost=True, beside=5)
    run.step(4, found=16)
    assert run.watch.preemptions[0].recomputed_tokens == 4


def test_a_second_loss_before_it_is_back_goes_on_from_the_first():
    run = _Run()
    run.step(20)
    run.step(0, lost=True, beside=5)
    run.step(8)
    run.step(0, lost=True, beside=5)
    run.step(20)
    first, second = run.watch.preemptions
    assert (first.recomputed_tokens, second.recomputed_tokens) == (8, 20)
    assert second.reached_tokens == 20
    assert math.isnan(stalled_s(first, _when))
    assert stalled_s(second, _when) == 4.5 - 1  # from the first loss on


def test_it_is_priced_by_what_each_step_would_be_shorter_by():
    run = _Run()
    run.step(20)
    run.step(0, lost=True, beside=5)
    run.step(12, beside=3)
    run.step(10)
    run.watch.price(lambda core: _PerToken())
    # 12 of 15 tokens: 12 ms. Then 8 of 10, which leaves a step of 2: 8 ms.
    assert run.watch.preemptions[0].recomputed_s == pytest.approx(0.020)


def test_a_step_of_nothing_else_would_not_have_been():
    run = _Run()
    run.step(20)
    run.step(0, lost=True, beside=5)
    run.step(12)
    run.watch.price(lambda core: _PerToken())
    assert run.watch.preemptions[0].recomputed_s == pytest.approx(0.013)


def test_what_never_runs_again_costs_nothing():
    run = _Run()
    run.step(20)
    run.step(0, lost=True, beside=5)
    run.watch.price(lambda core: _PerToken())
    (lost,) = run.watch.preemptions
    assert (lost.recomputed_tokens, lost.recomputed_s, lost.back) == (0, 0.0, None)
