"""Each trial counts once, whoever dies and comes back."""

import optuna
import pytest
from optuna.distributions import IntDistribution

from twin.search.evaluation import Evaluation
from twin.search.study.drawing import Drawing
from twin.search.study.ledger import ATTEMPTS, Ledger
from twin.search.study.options import FinishedTrial
from twin.search.study.storage import open_store

NAME = "study"


@pytest.fixture
def open_ledger(tmp_path):
    """Opens ledgers as separate workers would; those given back are closed at the end."""
    stores = []

    def make(total=3):
        store = open_store(None, tmp_path, NAME)
        optuna.create_study(study_name=NAME, storage=store.storage, load_if_exists=True)
        stores.append(store)
        return Ledger(store, NAME, total)

    yield make
    for store in stores:
        store.locks.leave()


def result(number, value):
    return FinishedTrial(number, "complete", Evaluation({"x": value}, {"p99_ttft_s": value}))


def test_never_more_trials_than_asked_for(open_ledger):
    one, two = open_ledger(), open_ledger()
    claims = [one.claim(), two.claim(), one.claim()]
    assert [claim.trial.number for claim in claims] == [0, 1, 2]
    assert one.claim() is None
    assert two.claim() is None
    assert not one.complete()
    for owner, claim in zip((one, two, one), claims, strict=True):
        assert owner.finish(claim, result(claim.trial.number, 1.0), [1.0])
    assert two.complete()
    assert [trial.number for trial in two.finished()] == [0, 1, 2]
    assert two.finished()[1] == result(1, 1.0)


def test_a_dead_workers_trial_is_taken_over_and_its_late_result_dropped(open_ledger):
    dead, other = open_ledger(), open_ledger()
    lost = dead.claim()
    assert other.claim().trial.number == 1
    dead.leave()
    taken = other.claim()
    assert (taken.trial.number, taken.attempt) == (0, 2)
    # It was not dead after all, and comes to an end: before the other one, and after.
    drawing = Drawing({}, {"x": (1, IntDistribution(0, 9))})
    dead.keep(lost, drawing, {"ttft_s": 1.0})
    assert not dead.finish(lost, result(0, 7.0), [7.0])
    assert other.trials()[0].params == {}
    assert other.finish(taken, result(0, 5.0), [5.0])
    assert not dead.finish(lost, result(0, 7.0), [7.0])
    assert [trial.evaluation.objectives for trial in other.finished()] == [{"p99_ttft_s": 5.0}]


def test_what_an_earlier_attempt_drew_stays(open_ledger):
    dead, other = open_ledger(), open_ledger()
    dead.keep(dead.claim(), Drawing({}, {"x": (1, IntDistribution(0, 9))}), {})
    dead.leave()
    taken = other.claim()
    assert taken.trial.params == {"x": 1}
    other.keep(taken, Drawing({}, {"x": (1, IntDistribution(0, 9))}), {"ttft_s": -0.5})
    other.finish(taken, result(0, 5.0), [5.0])
    trial = other.trials()[0]
    assert trial.params == {"x": 1}
    assert trial.constraints == {"ttft_s": -0.5}


def test_what_was_given_back_counts_as_not_tried(open_ledger):
    one, two = open_ledger(), open_ledger()
    for _ in range(2 * ATTEMPTS):
        one.claim()
        one.release()
    taken = two.claim()
    assert (taken.trial.number, taken.attempt) == (0, 1)


def test_a_trial_that_kills_its_workers_is_given_up(open_ledger):
    for attempt in range(ATTEMPTS):
        doomed = open_ledger(total=1)
        claim = doomed.claim()
        assert (claim.trial.number, claim.attempt) == (0, attempt + 1)
        doomed.leave()
    last = open_ledger(total=1)
    assert last.claim() is None
    assert last.complete()
    (given_up,) = last.finished()
    assert given_up.state == "infeasible"
    assert given_up.reason == "5 workers died on it (killed from outside, or out of memory)"
