"""Neighbours of a policy."""

from dataclasses import replace

import pytest

from tests.unit.search.judging.fake_runs import BUDGET, DTYPE, ITL, KNOBS, SEQS, FakeRuns, problem
from twin.search.judging.sensitivity import neighbours, sensitivity
from twin.search.knob import Choices, Knob, Powers, Span
from twin.search.objectives import OBJECTIVES

NONE = frozenset()


def knob(domain, needs=None):
    return Knob("k", domain, NONE, "", needs or {})


@pytest.mark.parametrize(
    ("domain", "value", "expected"),
    [
        (Powers(64, 512), 256, [128, 512]),
        (Powers(64, 512), 64, [128]),
        (Powers(64, 512), 512, [256]),
        (Powers(64, 512), 300, [256, 512]),
        (Powers(64, 512), 1024, [512]),
        (Powers(64, 512), None, [64, 512]),
        (Span(0.8, 0.95, 0.01), 0.9, [0.88, 0.92]),
        (Span(0.8, 0.95, 0.01), 0.95, [0.93]),
        (Span(1, 64, 1), 1, [3]),
        (Choices(("auto", "fp8", "int8")), "fp8", ["auto", "int8"]),
        (Choices((True, False)), True, [False]),
    ],
)
def test_neighbours_by_hand(domain, value, expected):
    assert neighbours(knob(domain), value) == expected


def formula(candidate, part):
    return {ITL: 0.001 * candidate.get(BUDGET, 2048) / (2 if candidate.get(DTYPE) == "fp8" else 1)}


def run(candidate, knobs=KNOBS, runs=None, **more):
    runs = runs or FakeRuns(formula)
    asked = replace(problem(ITL), knobs=knobs)
    return sensitivity(candidate, asked, runs, [OBJECTIVES[ITL]], **more)


def test_gains_against_the_policy_itself():
    found = {(one.key, one.value): one.relative[ITL] for one in run({BUDGET: 1024})}
    assert found == {
        (SEQS, "128"): 0,
        (SEQS, "512"): 0,
        (BUDGET, "512"): pytest.approx(0.5),
        (BUDGET, "2048"): pytest.approx(-1),
        (DTYPE, "fp8"): pytest.approx(0.5),
    }


def test_what_stands_at_its_default_is_left_out():
    runs = FakeRuns(formula)
    run({BUDGET: 1024}, runs=runs)
    assert "{}" in [asked[0] for asked in runs.asked]


def test_every_knob_has_a_neighbour_before_any_has_two():
    found = run({}, most=4)
    assert [one.key for one in found] == [SEQS, SEQS, BUDGET, DTYPE]
    assert len(run({}, most=2)) == 2


def test_a_knob_without_effect_is_passed_over():
    needy = Knob("policy.watermark", Span(0, 0.1, 0.01), NONE, "", {DTYPE: ("fp8",)})
    assert not [one for one in run({}, (*KNOBS, needy)) if one.key == needy.key]
    assert [one for one in run({DTYPE: "fp8"}, (*KNOBS, needy)) if one.key == needy.key]


def test_what_breaks_and_what_cannot_be():
    runs = FakeRuns(
        formula,
        lambda candidate, part: {"ttft_s": 0.2 if candidate.get(SEQS) == 128 else -0.1},
        infeasible=lambda c: "too many" if c.get(SEQS) == 512 else None,
    )
    low, high, *_ = run({}, runs=runs)
    assert low.broken == {"ttft_s": 0.2}
    assert (high.infeasible, high.relative) == ("too many", {})


def test_what_a_knob_needs_may_be_no_knob():
    """It then stands as the scenario has it."""
    chunked = Knob(
        "policy.watermark", Span(0, 0.1, 0.01), NONE, "", {"policy.enforce_eager": (False,)}
    )
    assert [one for one in run({}, (chunked,)) if one.key == chunked.key]
    eager = Knob(
        "policy.watermark", Span(0, 0.1, 0.01), NONE, "", {"policy.enforce_eager": (True,)}
    )
    assert run({}, (eager,)) == []


def test_a_policy_that_cannot_run_has_no_neighbours():
    assert run({}, runs=FakeRuns(formula, infeasible=lambda c: "no")) == []
