"""`run_study`: one study a problem, gone on with, never mixed up."""

import json
from dataclasses import replace

import pytest

from tests.search_runs import small_problem
from tests.studies import PROBLEM, TWO, run, told
from twin.errors import InputError
from twin.search.problem import Limits
from twin.search.study.coordinator import StudyStoppedError, Terminated
from twin.search.study.samplers import population_of


def test_an_interrupted_study_goes_on_to_the_same_end(tmp_path, monkeypatch):
    whole = run(tmp_path / "whole", monkeypatch, trials=20)
    for interrupt, code in ((KeyboardInterrupt(), 130), (Terminated(), 143)):
        out = tmp_path / str(code)
        with pytest.raises(StudyStoppedError) as stopped:
            run(out, monkeypatch, trials=20, break_at={17: interrupt})
        assert stopped.value.exit_code == code
        assert "of 20 trials, which" in str(stopped.value)
        assert "the same command goes on" in str(stopped.value)
        assert told(run(out, monkeypatch, trials=20)) == told(whole)


def test_a_finished_study_is_read_not_run_again(tmp_path, monkeypatch):
    first = run(tmp_path, monkeypatch, trials=12)
    before = (tmp_path / "study.journal").read_bytes()
    again = run(tmp_path, monkeypatch, trials=12, break_at={1: AssertionError("evaluated")})
    assert told(again) == told(first)
    assert (tmp_path / "study.journal").read_bytes() == before
    assert not (tmp_path / "study.journal.locks").exists()


def test_a_study_can_be_made_longer_not_shorter(tmp_path, monkeypatch):
    run(tmp_path, monkeypatch, TWO, trials=12)
    longer = run(tmp_path, monkeypatch, TWO, trials=30)
    assert len(longer.trials) == 30
    assert longer.population == population_of(12)  # as it began
    with pytest.raises(InputError, match=r"11 is fewer than the 30 trials that .* has already"):
        run(tmp_path, monkeypatch, TWO, trials=11)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"slo.ttft_s": 0.25}, {}, "scenario.slo.ttft_s is 0.5 there and 0.25 here"),
        ({}, {"seed": 9}, "seed is 0 there and 9 here"),
        ({}, {"sampler": "random"}, "sampler is 'tpe' there and 'random' here"),
    ],
)
def test_another_problem_in_the_same_folder_is_refused(
    tmp_path, monkeypatch, change, options, message
):
    run(tmp_path, monkeypatch, trials=6)
    with pytest.raises(InputError, match="holds the search of another problem") as refused:
        run(tmp_path, monkeypatch, small_problem(**change), trials=6, **options)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_names_the_first_differences_and_counts_the_rest(tmp_path, monkeypatch):
    run(tmp_path, monkeypatch, trials=6)
    other = replace(PROBLEM, limits=Limits(gpus=2, max_kv_error=0.1), search_share=0.5)
    with pytest.raises(InputError, match=r"\(and 1 more\)"):
        run(tmp_path, monkeypatch, other, trials=6, seed=1)


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        (TWO, {"halving": True}, "--halving: goes with one objective only"),
        (PROBLEM, {"trials": 0}, "--trials: 0 is too few"),
        (PROBLEM, {"workers": 0}, "--workers: 0 is too few"),
        (PROBLEM, {"seed": -1}, "--seed: -1 is negative"),
        (PROBLEM, {"sampler": "nsga"}, "unknown sampler 'nsga'"),
    ],
)
def test_options_that_cannot_be(tmp_path, monkeypatch, problem, options, message):
    with pytest.raises(InputError, match=message):
        run(tmp_path / "out", monkeypatch, problem, **options)
    assert not (tmp_path / "out").exists()


def test_trials_hold_plain_json_and_optunas_own_names(tmp_path, monkeypatch):
    import optuna

    from twin.search.study.storage import open_store

    result = run(tmp_path, monkeypatch, TWO, trials=15)
    store = open_store(None, tmp_path, result.name)
    study = optuna.load_study(study_name=result.name, storage=store.storage)
    assert study.metric_names == ["P99 time to first token", "P99 gap between tokens"]
    assert {d.name for d in study.directions} == {"MINIMIZE"}
    complete = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    assert len(complete) == len(result.complete) > 5
    for trial in study.trials:
        json.dumps(trial.user_attrs, allow_nan=False)
        assert set(trial.params) >= {"log2(policy.block_size)", "policy.watermark"}
    assert all(trial.constraints for trial in complete)
    json.dumps(study.user_attrs, allow_nan=False)


def test_halving_stops_weak_candidates_and_spares_the_starts(tmp_path, monkeypatch):
    halved = run(tmp_path / "a", monkeypatch, trials=40)
    whole = run(tmp_path / "b", monkeypatch, trials=40, halving=False)
    assert halved.halving
    states = [trial.state for trial in halved.trials]
    assert states.count("pruned") > 10
    assert all(t.state != "pruned" for t in whole.trials)
    assert all(t.state != "pruned" for t in halved.trials[: len(PROBLEM.starts)])
    for trial in halved.trials:
        if trial.state == "pruned":
            assert trial.share in (1 / 9, 1 / 3)
            percent = round(100 * trial.share)
            assert trial.reason == f"not in the best third on the first {percent} % of the traffic"
