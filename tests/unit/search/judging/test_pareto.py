"""Pareto sets and rank."""

import itertools

import numpy as np

from tests.unit.search.judging.fake_runs import BUDGET, GOODPUT, SEQS, TTFT
from twin.search.evaluation import Evaluation
from twin.search.judging.pareto import Tried, pareto_set, ranked
from twin.search.objectives import OBJECTIVES

BOTH = [OBJECTIVES[GOODPUT], OBJECTIVES[TTFT]]


def tried(number, goodput, ttft, changes=None, broken=0.0):
    candidate = {SEQS: number} if changes is None else changes
    values = {GOODPUT: goodput, TTFT: ttft}
    return Tried(number, Evaluation(candidate, values, {"ttft_s": broken}))


def test_front_by_hand():
    trials = [tried(0, 10, 5), tried(1, 12, 6), tried(2, 9, 6), tried(3, 12, 5.5)]
    assert [t.number for t in pareto_set(trials, BOTH)] == [3, 0]


def test_front_leaves_out_what_breaks_a_limit():
    trials = [tried(0, 10, 5), tried(1, 99, 1, broken=0.1)]
    assert [t.number for t in pareto_set(trials, BOTH)] == [0]


def test_front_is_what_nothing_beats():
    rng = np.random.default_rng(5)
    points = rng.integers(0, 12, (60, 2))
    trials = [tried(i, float(g), float(t)) for i, (g, t) in enumerate(points)]
    front = {t.number for t in pareto_set(trials, BOTH)}
    for a, b in itertools.product(range(60), repeat=2):
        beats = points[b][0] >= points[a][0] and points[b][1] <= points[a][1]
        if beats and tuple(points[a]) != tuple(points[b]):
            assert a not in front
    unbeaten = [
        a
        for a in range(60)
        if not any(
            points[b][0] >= points[a][0]
            and points[b][1] <= points[a][1]
            and tuple(points[a]) != tuple(points[b])
            for b in range(60)
        )
    ]
    assert front == set(unbeaten)


def test_equal_candidates_count_once():
    trials = [tried(0, 10, 5, {}), tried(1, 10, 5, {})]
    assert [t.number for t in ranked(trials, BOTH)] == [0]


def test_the_first_objective_decides():
    assert [t.number for t in ranked([tried(0, 10, 1), tried(1, 11, 9)], BOTH)] == [1, 0]


def test_a_tie_goes_to_the_next_objective():
    trials = [tried(0, 1000, 9), tried(1, 1004, 9.5), tried(2, 999, 4), tried(3, 990, 1)]
    # 999 to 1004 differ by half a per cent; 990 does not belong to them.
    assert [t.number for t in ranked(trials, BOTH)] == [2, 0, 1, 3]


def test_a_tie_in_all_goes_to_the_fewer_changes():
    trials = [tried(0, 10, 5, {SEQS: 64, BUDGET: 512}), tried(1, 10, 5, {SEQS: 64})]
    assert [t.number for t in ranked(trials, BOTH)] == [1, 0]
