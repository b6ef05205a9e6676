"""Which knobs results go with."""

import numpy as np
import pytest
from scipy import stats

from tests.unit.search.judging.fake_runs import BUDGET, DEFAULTS, DTYPE, ITL, SEQS
from twin.search.evaluation import Evaluation
from twin.search.judging.importance import FEWEST_TRIALS, MOST_LEVELS, explained, importance, ranks
from twin.search.judging.pareto import Tried
from twin.search.objectives import OBJECTIVES


def trials(count, value, seed=3):
    """Random candidates, a value of each."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        candidate = {
            SEQS: int(rng.integers(1, 10_000)),
            BUDGET: int(2 ** rng.integers(9, 14)),
            DTYPE: ["auto", "fp8"][rng.integers(2)],
        }
        found.append(Tried(number, Evaluation(candidate, {ITL: float(value(candidate, rng))})))
    return found


def shares(found):
    return {one.key: one.share for one in importance(found, OBJECTIVES[ITL], DEFAULTS)}


def test_what_decides_has_it_all():
    found = shares(trials(300, lambda c, rng: c[BUDGET]))
    assert found[BUDGET] == pytest.approx(1)
    assert found[DTYPE] < 0.05
    assert found[SEQS] < 0.05


def test_noise_goes_with_nothing():
    assert max(shares(trials(300, lambda c, rng: rng.normal())).values()) < 0.05


def test_two_share_by_their_weight():
    found = shares(trials(400, lambda c, rng: 3 * np.log2(c[BUDGET]) + (c[DTYPE] == "fp8")))
    assert found[BUDGET] > 10 * found[DTYPE] > 0


def test_a_curve_counts_as_well_as_a_slope():
    found = shares(trials(300, lambda c, rng: abs(np.log2(c[BUDGET]) - 11)))
    assert found[BUDGET] == pytest.approx(1)


def test_numbers_are_cut_into_few_levels_of_all_trials():
    found = importance(trials(300, lambda c, rng: c[SEQS]), OBJECTIVES[ITL], DEFAULTS)
    seqs = next(one for one in found if one.key == SEQS)
    assert len(seqs.levels) == MOST_LEVELS
    assert sum(seqs.trials.values()) == 300
    assert min(seqs.trials.values()) > 30
    assert list(seqs.levels.values()) == sorted(seqs.levels.values())


def test_a_knob_left_out_stands_at_its_default():
    rng = np.random.default_rng(1)
    drawn = [{} if rng.random() < 0.5 else {BUDGET: 512} for _ in range(40)]
    # Distinct, as a second knob tells them apart.
    found = [
        Tried(i, Evaluation({**c, SEQS: i + 1}, {ITL: 1.0 if c else 2.0}))
        for i, c in enumerate(drawn)
    ]
    one = next(x for x in importance(found, OBJECTIVES[ITL], DEFAULTS) if x.key == BUDGET)
    assert one.levels == {"512": 1.0, "2048": 2.0}
    assert one.share == 1


def test_few_trials_say_nothing():
    assert importance(trials(FEWEST_TRIALS - 1, lambda c, rng: 1), OBJECTIVES[ITL], DEFAULTS) == []
    assert importance(trials(FEWEST_TRIALS, lambda c, rng: rng.normal()), OBJECTIVES[ITL], DEFAULTS)


def test_ranks_are_scipys():
    values = np.array([3.0, 1.0, 3.0, 2.0, 1.0])
    assert ranks(values).tolist() == (stats.rankdata(values) - 1).tolist()


def test_epsilon_squared_by_hand():
    # Within 4 on 4 degrees, total 34 on 5.
    values = np.array([1.0, 2, 3, 5, 6, 9])
    level = np.array([0, 0, 0, 1, 1, 1])
    within = 2 + (((np.array([5, 6, 9]) - 20 / 3) ** 2).sum())
    total = ((values - values.mean()) ** 2).sum()
    assert explained(values, level) == pytest.approx(1 - (within / 4) / (total / 5))


def test_nothing_varies():
    assert explained(np.ones(30), np.arange(30) % 3) == 0
    assert explained(np.arange(30.0), np.zeros(30, dtype=np.int64)) == 0
