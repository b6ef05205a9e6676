"""What is recommended, and why not."""

from dataclasses import replace

import pytest

from tests.unit.search.judging.fake_runs import (
    BUDGET,
    DTYPE,
    GOODPUT,
    ITL,
    SEQS,
    TTFT,
    FakeRuns,
    problem,
)
from twin.search.judging.confirm import fresh_seeds
from twin.search.judging.verdict import MOST_TRIED, judge

SMALL, SMALLER = {BUDGET: 1024}, {BUDGET: 512}


def itl_of(by_budget, held_out=None):
    """ITL by token budget; another one on held-out traffic, where given."""

    def formula(candidate, part):
        table = by_budget if part == "search" or held_out is None else held_out
        return {ITL: table[candidate.get(BUDGET, 2048)]}

    return formula


def judged(runs, *candidates, objectives=(ITL,), **more):
    trials = runs.tried({}, *candidates)
    return judge(problem(*objectives), trials, runs, experts=False, **more)


def test_a_clear_gain_is_adopted():
    runs = FakeRuns(itl_of({2048: 0.060, 1024: 0.040, 512: 0.045}))
    found = judged(runs, SMALL, SMALLER)
    assert found.decision == "adopt"
    assert (found.candidate, found.trial) == (SMALL, 1)
    gain = found.chosen.gain(ITL)
    assert gain.paired.relative == pytest.approx(1 / 3)
    assert gain.verdict == "gain"
    assert "33 % better" in found.sentence


def test_gains_come_from_fresh_runs_alone():
    """Half of what the trials show is luck."""
    runs = FakeRuns(itl_of({2048: 0.060, 1024: 0.020}, held_out={2048: 0.060, 1024: 0.040}))
    found = judged(runs, SMALL)
    assert found.chosen.gain(ITL).paired.relative == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("budget_itl", "decision"), [(0.0562, "keep the default"), (0.0555, "adopt")]
)
def test_just_below_and_above_forecast_error(budget_itl, decision):
    """6.9 % of TPOT for the same prices: 6.3 % is none, 7.5 % is a gain."""
    found = judged(FakeRuns(itl_of({2048: 0.060, 1024: budget_itl})), SMALL)
    assert found.decision == decision
    if decision != "adopt":
        assert "below the forecast error of 6.90 %" in found.sentence


def test_other_prices_take_a_larger_gain():
    def formula(candidate, part):
        return {ITL: 0.060 * (0.9 if DTYPE in candidate else 1)}

    found = judged(FakeRuns(formula), {DTYPE: "fp8"})
    assert found.decision == "keep the default"
    assert found.confirmations[0].gain(ITL).threshold == pytest.approx(2**0.5 * 0.09)


def test_noise_is_not_taken_for_a_gain():
    """A trial that was better by luck alone: one of twenty passes the interval on either side."""
    runs = FakeRuns(
        itl_of({2048: 0.060, 512: 0.040}, held_out={2048: 0.06, 512: 0.06}), own_noise=0.3
    )
    found = []
    for seed in range(80):
        asked = problem(ITL)
        asked = replace(asked, file=asked.file.model_copy(update={"seed": seed}))
        found.append(judge(asked, runs.tried({}, SMALLER), runs, experts=False))
    kept = [one for one in found if one.decision == "keep the default"]
    assert len(kept) >= 75
    assert sum("noise of traffic" in one.sentence for one in kept) >= 70


def test_no_better_trial_runs_nothing_again():
    runs = FakeRuns(itl_of({2048: 0.060, 1024: 0.060, 512: 0.070}))
    found = judged(runs, SMALL, SMALLER)
    assert found.decision == "keep the default"
    assert "no trial was better" in found.sentence
    assert all(part == "search" for _, part, *_ in runs.asked)


def test_a_trial_that_is_better_by_nothing_is_not_denied():
    runs = FakeRuns(itl_of({2048: 0.060, 1024: 0.0599999}))
    found = judged(runs, SMALL)
    assert found.sentence == (
        "Keep the default: no trial was better in P99 gap between tokens by more than 0.500 %, "
        "which counts as equal (the best by 0.000167 %)."
    )
    even = judged(FakeRuns(itl_of({2048: 0.060, 1024: 0.060})), SMALL)
    assert even.sentence == "Keep the default: no trial was better in P99 gap between tokens."


@pytest.mark.parametrize(
    ("changed", "margin", "close"),
    [
        (SMALL, 0.0895, True),  # 9.0 % of one forecast's TPOT
        (SMALL, 0.0905, False),
        ({DTYPE: "fp8"}, 0.125, True),  # 12.7 % of a difference, told beside the gain
        ({DTYPE: "fp8"}, 0.128, False),
    ],
)
def test_a_limit_kept_by_less_than_forecast_error_is_close(changed, margin, close):
    runs = FakeRuns(
        lambda candidate, part: {ITL: 0.03 if candidate else 0.06},
        lambda candidate, part: {"tpot_s": -margin},
    )
    chosen = judged(runs, changed).chosen
    assert chosen.close == (("tpot_s",) if close else ())
    assert any("can undo" in reason for reason in chosen.reasons) == close
    assert chosen.limit_errors["tpot_s"] == max(0.09, chosen.gain(ITL).threshold)


def test_a_close_limit_is_told_where_the_default_cannot_run():
    runs = FakeRuns(
        itl_of({2048: 0.06, 1024: 0.03}),
        lambda candidate, part: {"tpot_s": -0.01},
        infeasible=lambda c: None if c else "it does not fit",
    )
    found = judged(runs, SMALL)
    assert found.chosen.close == ("tpot_s",)
    assert "the SLO's TPOT limit is kept by less than forecast error" in found.sentence


def test_a_winner_that_breaks_a_limit_gives_way():
    def violations(candidate, part):
        broken = candidate == SMALL and part == "held_out"
        return {"ttft_s": {1024: -0.05, 512: -0.4}.get(candidate.get(BUDGET), -0.5) + 0.15 * broken}

    runs = FakeRuns(itl_of({2048: 0.060, 1024: 0.030, 512: 0.040}), violations)
    found = judged(runs, SMALL, SMALLER)
    assert found.candidate == SMALLER
    first, second = found.confirmations
    assert not first.accepted
    assert first.broken == {"ttft_s": pytest.approx(0.1)}
    assert second.accepted
    assert "breaks the SLO's TTFT limit by 10.0 %" in first.reasons[0]


def test_what_stood_as_close_to_the_limit_is_not_tried():
    runs = FakeRuns(
        itl_of({2048: 0.060, 1024: 0.030, 512: 0.040}),
        lambda candidate, part: {
            "ttft_s": -0.05 + 0.15 * (part == "held_out" and BUDGET in candidate)
        },
    )
    found = judged(runs, SMALL, SMALLER)
    assert found.decision == "keep the default"
    assert len(found.confirmations) == 1
    assert "breaks the SLO's TTFT limit by 10.0 % on held-out traffic" in found.sentence


def test_at_most_a_few_are_tried():
    budgets = {2048: 0.060} | {1024 - i: 0.030 * 1.01**i for i in range(8)}
    runs = FakeRuns(
        itl_of(budgets),
        lambda candidate, part: {
            "ttft_s": 0.01
            if part == "held_out" and candidate
            else candidate.get(BUDGET, 1000) / 20 - 60
        },
    )
    found = judged(runs, *({BUDGET: 1024 - i} for i in range(8)))
    assert found.decision == "keep the default"
    assert len(found.confirmations) == MOST_TRIED


def test_keeping_a_limit_that_the_default_breaks_is_a_gain():
    runs = FakeRuns(
        itl_of({2048: 0.060, 1024: 0.060}),
        lambda candidate, part: {"ttft_s": -0.4 if candidate else 1.0},
    )
    found = judged(runs, SMALL)
    assert found.decision == "adopt"
    assert "keeps the SLO's TTFT limit, which the default breaks" in found.sentence


def test_a_default_that_misses_within_error_is_not_rescued():
    runs = FakeRuns(
        itl_of({2048: 0.060, 1024: 0.060}),
        lambda candidate, part: {"ttft_s": -0.02 if candidate else 0.02},
    )
    found = judged(runs, SMALL)
    assert found.decision == "keep the default"
    assert any("by less than forecast error" in r for r in found.confirmations[0].reasons)


def test_nothing_keeps_the_constraints():
    runs = FakeRuns(itl_of({2048: 0.06, 1024: 0.03}), lambda c, p: {"ttft_s": 0.5 if c else 0.9})
    found = judged(runs, SMALL)
    assert found.decision == "nothing keeps the constraints"
    assert f"the closest ({BUDGET}=1024) breaks the SLO's TTFT limit by 50.0 %" in found.sentence


def test_a_default_that_cannot_run():
    runs = FakeRuns(
        itl_of({2048: 0.06, 1024: 0.03}), infeasible=lambda c: None if c else "it does not fit"
    )
    found = judged(runs, SMALL)
    assert found.decision == "adopt"
    assert "the default cannot run" in found.sentence


def test_goodput_that_hangs_on_the_limits_is_no_gain():
    def goodput(candidate, part):
        return {GOODPUT: 1500.0 if candidate else 1000.0}

    def at_limits(candidate):
        return {"tight": {GOODPUT: 900.0}, "loose": {GOODPUT: 1600.0 if candidate else 1590.0}}

    runs = FakeRuns(goodput, at_limits=at_limits)
    found = judged(runs, SMALL, objectives=(GOODPUT,))
    assert found.decision == "keep the default"
    assert "SLO's limits" in found.sentence
    assert found.confirmations[0].gain(GOODPUT).at_limits["tight"] == 0


def test_a_loss_in_the_first_objective_is_no_trade():
    """Ties in the first objective let the second decide, on fresh traffic the first shows."""

    def formula(candidate, part):
        worse = candidate and part == "held_out"
        return {ITL: 0.09 if worse else 0.06, TTFT: 0.2 if candidate else 0.9}

    found = judged(FakeRuns(formula), SMALL, objectives=(ITL, TTFT))
    assert found.decision == "keep the default"
    assert "loses" in found.sentence


def test_the_second_objective_decides_where_the_first_is_even():
    def formula(candidate, part):
        return {ITL: 0.06, TTFT: 0.2 if candidate else 0.9}

    found = judged(FakeRuns(formula), SMALL, objectives=(ITL, TTFT))
    assert found.decision == "adopt"
    assert found.chosen.gain(ITL).verdict == "none"
    assert found.chosen.gain(TTFT).verdict == "gain"


def test_changes_that_bring_nothing_are_left_out():
    runs = FakeRuns(itl_of({2048: 0.060, 1024: 0.030}))
    found = judged(runs, {SEQS: 128, **SMALL, DTYPE: "fp8"})
    assert found.candidate == SMALL
    assert found.trial == 1


def test_both_sides_meet_the_same_fresh_traffic():
    runs = FakeRuns(itl_of({2048: 0.060, 1024: 0.030}))
    judged(runs, SMALL, seeds=3)
    fresh = [a for a in runs.asked if a[1] == "held_out" and a[2] is not None]
    by_candidate = {key: [a[2:] for a in fresh if a[0] == key] for key in {a[0] for a in fresh}}
    assert len(by_candidate) == 2
    assert len({tuple(asked) for asked in by_candidate.values()}) == 1
    assert all(len(asked) == 3 for asked in by_candidate.values())


def test_a_recording_is_cut_into_stretches():
    runs = FakeRuns(itl_of({2048: 0.060, 1024: 0.030}), recorded=True)
    found = judged(runs, SMALL, seeds=4)
    stretches = [a[3:] for a in runs.asked if a[0] == "{}" and a[3] < 1]
    assert stretches == [(1 / 8, pytest.approx(i / 8)) for i in range(8)]
    assert found.chosen.over == "stretches"
    assert found.chosen.gain(ITL).paired.pairs == 8


def test_one_seed_is_refused():
    with pytest.raises(ValueError, match="two seeds"):
        judged(FakeRuns(itl_of({2048: 0.06})), seeds=1)


def test_fresh_seeds_are_fresh_and_the_same_again():
    assert fresh_seeds(7, 5) == fresh_seeds(7, 5)
    assert fresh_seeds(7, 5) == fresh_seeds(7, 9)[:5]
    assert len({7, *fresh_seeds(7, 100)}) == 101
    assert all(0 <= seed < 2**63 for seed in fresh_seeds(7, 100))
