"""Errors that were planted, and the verdicts on them."""

import numpy as np
import pytest

from calibrate.validation.judge import judge, weighted_median
from twin.validation import ValidatedStep


def steps(errors_pct, names=None, weights=None):
    count = len(errors_pct)
    names = names or ["mixed"] * count
    weights = weights or [1 / count] * count
    return [
        ValidatedStep(
            stratum=name, core=0, number=number, weight=weight, seqs=1, tokens=1, kv_tokens=1,
            captured=True, simulated_s=1.0, predicted_s=2.0 * (1 + error / 100), measured_s=2.0,
            measured_p90_s=2.0,
        )
        for number, (error, name, weight) in enumerate(zip(errors_pct, names, weights, strict=True))
    ]  # fmt: skip


def test_a_small_even_error_is_validated():
    found = judge(steps([3.0] * 12), {"mixed": 1.0}, seed=0)
    assert found.validated
    assert found.overall.median_pct == pytest.approx(3)
    assert found.overall.bias_pct == pytest.approx(3)
    assert found.bias_interval_pct == pytest.approx((3, 3))


@pytest.mark.parametrize(("error", "kept"), [(4.99, True), (5.01, False), (-5.01, False)])
def test_the_bar_is_five_per_cent(error, kept):
    found = judge(steps([error] * 12), {"mixed": 1.0}, seed=0)
    assert found.validated is kept
    if not kept:
        assert any("median error 5.0 % is above 5 %" in reason for reason in found.reasons)
        assert any("bias may lie beyond 5 %" in reason for reason in found.reasons)


def test_scattered_errors_without_a_bias_are_judged_by_their_median():
    scattered = [8.0, -8.0] * 40
    found = judge(steps(scattered), {"mixed": 1.0}, seed=0)
    assert found.overall.bias_pct == pytest.approx(0)
    assert found.bias_interval_pct[0] < 0 < found.bias_interval_pct[1]
    assert not found.validated
    assert found.reasons[0].startswith("median error 8.0 %")


def test_a_bias_that_might_be_large_is_not_validated_however_small_the_median():
    found = judge(steps([1.0] * 9 + [60.0] * 3), {"mixed": 1.0}, seed=0)
    assert found.overall.median_pct == pytest.approx(1)
    assert not found.validated
    assert "bias may lie beyond" in found.reasons[0]


def test_the_stratum_that_fails_is_named():
    errors = [1.0] * 6 + [20.0] * 6
    found = judge(steps(errors, ["decode"] * 6 + ["mixed"] * 6), {"decode": 0.4, "mixed": 0.6}, 0)
    assert [one.name for one in found.strata] == ["mixed", "decode"]
    assert found.strata[0].median_pct == pytest.approx(20)
    assert found.strata[1].bias_pct == pytest.approx(1)
    assert found.reasons[-1] == "mixed (60% of GPU time) is off by 20.0 %"
    assert not any(reason.startswith("decode") for reason in found.reasons)


def test_weights_decide_what_counts():
    errors, names = [1.0] * 8 + [30.0] * 8, ["decode"] * 8 + ["mixed"] * 8
    light = judge(
        steps(errors, names, [0.12] * 8 + [0.005] * 8), {"decode": 0.96, "mixed": 0.04}, 0
    )
    heavy = judge(
        steps(errors, names, [0.005] * 8 + [0.12] * 8), {"decode": 0.04, "mixed": 0.96}, 0
    )
    assert light.overall.median_pct == pytest.approx(1)
    assert light.validated
    assert light.overall.bias_pct == pytest.approx(0.96 * 1 + 0.04 * 30)
    assert heavy.overall.median_pct == pytest.approx(30)


def test_a_handful_of_steps_validates_nothing():
    few = judge(steps([0.0] * 7), {"mixed": 1.0}, seed=0)
    assert few.reasons == ("7 steps were measured, 8 are needed",)
    assert judge(steps([0.0] * 8), {"mixed": 1.0}, seed=0).validated


def test_intervals_hold_the_truth_nine_times_in_ten_at_least():
    random = np.random.default_rng(0)
    held = 0
    for number in range(100):
        errors = 2.0 + 3.0 * random.standard_normal(24)
        low, high = judge(steps(errors.tolist()), {"mixed": 1.0}, number).bias_interval_pct
        held += low <= 2.0 <= high
    assert 85 <= held <= 100


def test_one_seed_one_interval():
    errors = np.random.default_rng(1).normal(0, 4, 24).tolist()
    one, same, other = (judge(steps(errors), {"mixed": 1.0}, seed) for seed in (1, 1, 2))
    assert one == same
    assert one.bias_interval_pct != other.bias_interval_pct


def test_a_weighted_median_is_where_half_the_weight_lies():
    values = np.array([3.0, 1.0, 2.0])
    assert weighted_median(values, np.array([1.0, 1.0, 1.0])) == 2.0
    assert weighted_median(values, np.array([2.1, 1.0, 1.0])) == 3.0
    assert weighted_median(np.array([1.0, 2.0]), np.array([0.5, 0.5])) == 1.0
