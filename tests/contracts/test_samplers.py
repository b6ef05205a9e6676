"""What every sampler has to keep."""

import random

import pytest

from tests.studies import PROBLEM, TWO, run, told
from twin.search.knob import Choices, Powers
from twin.search.study.samplers import SAMPLERS

TRIALS = 30


@pytest.fixture(params=sorted(SAMPLERS))
def sampler(request):
    return request.param


@pytest.fixture(params=[PROBLEM, TWO], ids=["one objective", "two objectives"])
def problem(request):
    return request.param


def within(knob, value):
    domain = knob.domain
    if isinstance(domain, Choices):
        return value in domain.values
    if isinstance(domain, Powers):
        return domain.low <= value <= domain.high and value & (value - 1) == 0
    at = (value - domain.low) / domain.step
    return domain.low <= value <= domain.high and at == pytest.approx(round(at))


def test_starts_come_first_and_all_else_is_of_the_space(sampler, problem, tmp_path, monkeypatch):
    result = run(tmp_path, monkeypatch, problem, trials=TRIALS, sampler=sampler)
    assert [trial.number for trial in result.trials] == list(range(TRIALS))
    first = [dict(trial.candidate) for trial in result.trials[: len(problem.starts)]]
    assert first == [dict(start) for start in problem.starts]
    knobs = {knob.key: knob for knob in problem.knobs}
    for trial in result.trials[len(problem.starts) :]:
        assert all(within(knobs[key], value) for key, value in trial.candidate.items())
    assert len({repr(trial.candidate) for trial in result.trials}) > TRIALS // 2


def test_a_seed_gives_the_same_trials_and_another_one_others(
    sampler, problem, tmp_path, monkeypatch
):
    runs = [
        told(run(tmp_path / str(at), monkeypatch, problem, trials=TRIALS, sampler=sampler, seed=s))
        for at, s in enumerate((3, 3, 4))
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_cut_anywhere_it_goes_on_to_the_same_end(sampler, problem, tmp_path, monkeypatch):
    options = {"trials": TRIALS, "sampler": sampler, "seed": 5}
    whole = run(tmp_path / "whole", monkeypatch, problem, **options)
    journal = (tmp_path / "whole" / "study.journal").read_bytes()
    chance = random.Random(sampler)
    for at in range(2):
        # What a killed writer may leave: any first part of the file, its last line torn.
        folder = tmp_path / str(at)
        folder.mkdir()
        (folder / "study.journal").write_bytes(journal[: chance.randrange(len(journal))])
        again = run(folder, monkeypatch, problem, **options)
        assert told(again) == told(whole)
