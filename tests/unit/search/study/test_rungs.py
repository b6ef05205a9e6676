"""After which parts of the traffic weak candidates may stop."""

from dataclasses import replace

import optuna
import pytest

from tests.studies import PROBLEM, TWO, Formula, run, told
from twin.search.evaluation import Evaluation
from twin.search.study import coordinator
from twin.search.study.coordinator import StudyStoppedError
from twin.search.study.rungs import SHARES, TOLERANCE, Rung, measured_rungs, told_rungs
from twin.search.study.storage import open_store

NINTH, THIRD = SHARES


def figures(*values, broken=(0.0, 0.0, 0.0)):
    """Return what gives these values on a ninth, a third and all of the traffic."""
    shares = (*SHARES, 1.0)
    by_share = {
        share: Evaluation({}, {"p99_ttft_s": value}, {"ttft_s": limit, "tpot_s": -0.9})
        for share, value, limit in zip(shares, values, broken, strict=True)
    }
    return lambda _candidate, share: by_share[share]


def test_a_part_counts_where_its_figures_are_near_those_of_the_whole():
    rungs = measured_rungs(PROBLEM, "where it represents", figures(0.017, 0.035, 0.039))
    assert [rung.share for rung in rungs] == list(SHARES)
    assert [rung.off for rung in rungs] == pytest.approx([22 / 39, 4 / 39])
    assert [rung.used for rung in rungs] == [False, True]


@pytest.mark.parametrize(("value", "used"), [(1.25, True), (0.75, True), (1.26, False)])
def test_the_tolerance_holds_both_ways(value, used):
    rungs = measured_rungs(PROBLEM, "where it represents", figures(value, 1.0, 1.0))
    assert TOLERANCE == 0.25
    assert [rung.used for rung in rungs] == [used, True]


def test_limits_broken_on_the_whole_alone_do_not_show_on_a_part():
    steady = figures(1.0, 1.0, 1.0, broken=(-0.8, 0.1, 0.5))
    rungs = measured_rungs(PROBLEM, "where it represents", steady)
    assert [rung.off for rung in rungs] == pytest.approx([0.5 / 1.5, 0.4 / 1.5])
    assert not any(rung.used for rung in rungs)
    kept = figures(1.0, 1.0, 1.0, broken=(-0.9, -0.1, -0.4))  # by however much
    assert all(rung.used for rung in measured_rungs(PROBLEM, "where it represents", kept))


def test_where_the_default_cannot_be_the_next_point_is_compared():
    good, asked = figures(0.5, 1.0, 1.0), []

    def evaluate(candidate, share):
        asked.append(dict(candidate))
        if candidate == {}:
            return Evaluation(candidate, infeasible="does not fit")
        return good(candidate, share)

    rungs = measured_rungs(PROBLEM, "where it represents", evaluate)
    assert [rung.used for rung in rungs] == [False, True]
    assert asked == [{}, *[dict(PROBLEM.starts[1])] * 3]


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda candidate, _share: Evaluation(candidate, infeasible="does not fit"),
        figures(float("inf"), float("inf"), 1.0),
        figures(1.0, 1.0, 0.0),
        figures(1.0, 1.0, float("inf")),
    ],
)
def test_nothing_to_compare_stops_nobody(evaluate):
    rungs = measured_rungs(PROBLEM, "where it represents", evaluate)
    assert rungs == [Rung(NINTH, None, used=False), Rung(THIRD, None, used=False)]
    assert "no figures to compare" in told_rungs(rungs)


def test_what_is_told():
    off = (Rung(NINTH, 0.56, used=False), Rung(THIRD, 0.37, used=False))
    assert told_rungs(off) == (
        "Weak candidates were not stopped early after the first 11 % and the first 33 % of the "
        "traffic, which does not represent all of it (figures of the same policy are 56 % and "
        "37 % off there)."
    )
    assert "after the first 11 % of the traffic" in told_rungs((off[0], Rung(THIRD, 0.1, True)))
    forced = told_rungs([replace(rung, used=True) for rung in off])
    assert forced.startswith("Weak candidates were stopped after the first 11 % and the first 33")
    assert "as --halving asks" in forced
    assert told_rungs((Rung(NINTH, 0.2, True), Rung(THIRD, 0.1, True))) is None
    assert told_rungs(()) is None


class Growing(Formula):
    """Gives figures that grow with the traffic, candidates in another order on a part of it."""

    def evaluate(self, candidate, *piece):
        found = super().evaluate(candidate, *piece)
        if found.infeasible is not None:
            return found
        share = piece[0].share if piece else 1.0
        value = found.objectives["p99_ttft_s"]
        values = {"p99_ttft_s": 3 + value if share == 1 else 2 - value}
        return replace(found, objectives=values, violations={})


def grown(out, monkeypatch, *, break_at=None, **options):
    monkeypatch.setattr(coordinator, "Evaluator", lambda problem: Growing(problem, break_at or {}))
    return coordinator.run_study(PROBLEM, coordinator.StudyOptions(out=out, **options))


def best(result):
    return min(one.objectives["p99_ttft_s"] for one in result.complete)


def test_traffic_that_grows_prunes_no_good_candidate(tmp_path, monkeypatch):
    result = grown(tmp_path / "a", monkeypatch, trials=40)
    assert not result.halving
    assert [rung.share for rung in result.rungs] == list(SHARES)
    assert not any(trial.state == "pruned" for trial in result.trials)
    forced = grown(tmp_path / "b", monkeypatch, trials=40, halving=True)
    assert forced.halving
    assert sum(trial.state == "pruned" for trial in forced.trials) > 10
    assert best(result) < best(forced)


def test_a_study_keeps_what_was_decided(tmp_path, monkeypatch):
    whole = run(tmp_path / "whole", monkeypatch, trials=30)
    with pytest.raises(StudyStoppedError):
        run(tmp_path / "cut", monkeypatch, trials=30, break_at={20: KeyboardInterrupt()})
    # Even where this process would decide otherwise, trials of a study are compared alike.
    monkeypatch.setattr(coordinator, "measured_rungs", lambda *_: pytest.fail("decided again"))
    again = run(tmp_path / "cut", monkeypatch, trials=30)
    assert (told(again), again.rungs) == (told(whole), whole.rungs)
    store = open_store(None, tmp_path / "cut", again.name)
    kept = optuna.load_study(study_name=again.name, storage=store.storage).user_attrs["shares"]
    assert [(one["share"], one["used"]) for one in kept] == [(NINTH, True), (THIRD, True)]


@pytest.mark.parametrize("call", [1, 3])
def test_a_run_cut_short_before_it_had_decided_decides_anew(tmp_path, monkeypatch, call):
    with pytest.raises(StudyStoppedError, match="stopped after 0 of 12 trials"):
        run(tmp_path / "cut", monkeypatch, trials=12, break_at={call: KeyboardInterrupt()})
    again = run(tmp_path / "cut", monkeypatch, trials=12)
    assert told(again) == told(run(tmp_path / "whole", monkeypatch, trials=12))


def test_what_another_decided_first_counts(tmp_path, monkeypatch):
    """Two machines begin at once: one writes while the other still measures."""
    others = [
        {"share": NINTH, "off": 0.5, "used": False},
        {"share": THIRD, "off": 0.1, "used": True},
    ]

    def late(*_):
        store = open_store(None, tmp_path, "any")
        (found,) = store.storage.get_all_studies()
        study = optuna.load_study(study_name=found.study_name, storage=store.storage)
        study.set_user_attr("shares", others)
        return [Rung(NINTH, 0.0, used=True), Rung(THIRD, 0.0, used=True)]

    monkeypatch.setattr(coordinator, "measured_rungs", late)
    result = run(tmp_path, monkeypatch, trials=20)
    assert result.rungs == tuple(Rung(**one) for one in others)
    assert {trial.share for trial in result.trials if trial.state == "pruned"} == {THIRD}


def test_no_halving_measures_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(coordinator, "measured_rungs", lambda *_: pytest.fail("measured"))
    assert run(tmp_path / "a", monkeypatch, trials=6, halving=False).rungs == ()
    assert run(tmp_path / "b", monkeypatch, TWO, trials=6).rungs == ()
    assert run(tmp_path / "c", monkeypatch, trials=6, sampler="random").rungs == ()


def test_halving_that_is_forced_is_another_study(tmp_path, monkeypatch):
    run(tmp_path, monkeypatch, trials=6)
    with pytest.raises(coordinator.InputError, match="halving is 'where it represents' there"):
        run(tmp_path, monkeypatch, trials=6, halving=True)
