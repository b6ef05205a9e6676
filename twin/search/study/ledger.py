"""`Ledger`: which trials there are, who works on each, and what came of them. Each counts once.

A trial is made by the worker that takes it, under the study's lock, so that there are never more
than asked for, and carries who that is. One whose worker has died is taken over under the same
number. What a worker brings is kept only while the trial is still its own, so one that was thought
dead cannot count a second time.
"""

import json
import os
import platform
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from optuna.trial import FrozenTrial, TrialState, create_trial

from twin.search.evaluation import Evaluation
from twin.search.knob import Candidate
from twin.search.study.drawing import Drawing
from twin.search.study.options import FinishedTrial
from twin.search.study.storage import Store

WORKER, RESULT, RUNGS, DRAWS = "worker", "result", "rungs", "draws"
ATTEMPTS = 5
"""Workers that may die on a trial before it counts as infeasible: it may well be what kills."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A trial that is this worker's.

    Attributes:
        trial: as it was when it was claimed.
        trial_id: its number in the storage.
        attempt: how many workers have tried it, this one included.
    """

    trial: FrozenTrial
    trial_id: int
    attempt: int


class Ledger:
    """The trials of one study.

    Args:
        store: that keeps it.
        study: its name.
        total: trials in the end.
    """

    def __init__(self, store: Store, study: str, total: int) -> None:
        self._store, self._total = store, total
        self._study_id = store.storage.get_study_id_from_name(study)
        self._worker = uuid.uuid4().hex
        self._keys: dict[int, str] = {}
        store.locks.announce(self._worker)

    def trials(self) -> list[FrozenTrial]:
        """Return all trials by number; not to be changed."""
        found = self._store.storage.get_all_trials(self._study_id, deepcopy=False)
        return sorted(found, key=lambda trial: trial.number)

    def finished(self) -> list[FinishedTrial]:
        """Return the finished trials by number."""
        return [finished_trial(trial) for trial in self.trials() if trial.state.is_finished()]

    def candidates(self) -> set[str]:
        """Return the keys of all candidates that finished trials have had."""
        for trial in self.trials():
            if trial.number not in self._keys and trial.state.is_finished():
                self._keys[trial.number] = key_of(trial.user_attrs[RESULT]["candidate"])
        return set(self._keys.values())

    def complete(self) -> bool:
        """Whether all trials are finished."""
        return sum(trial.state.is_finished() for trial in self.trials()) >= self._total

    def claim(self) -> Claim | None:
        """Take the first trial that nobody works on; None: others work on all that are left."""
        with self._store.locks.exclusive():
            trials = self.trials()
            for trial in trials:
                if not trial.state.is_finished() and not self._lives(trial):
                    claim = self._take_over(trial)
                    if claim is not None:
                        return claim
            return self._new(len(trials)) if len(trials) < self._total else None

    def keep(self, claim: Claim, drawing: Drawing, constraints: Mapping[str, float]) -> None:
        """Write parameters and constraints of a claimed trial, unless it was taken away."""
        storage = self._store.storage
        with self._store.locks.exclusive():
            trial = storage.get_trial(claim.trial_id)
            if not self._owns(claim, trial):
                return
            if drawing.again and DRAWS not in trial.user_attrs:
                storage.set_trial_user_attr(claim.trial_id, DRAWS, drawing.again)
            for name, (value, distribution) in drawing.parameters.items():
                if name not in trial.params:
                    inner = distribution.to_internal_repr(value)
                    storage.set_trial_param(claim.trial_id, name, inner, distribution)
            for name, value in constraints.items():
                storage.set_trial_system_attr(claim.trial_id, f"constraints:{name}", float(value))

    def report(self, claim: Claim, rungs: list[list[float]], value: float) -> None:
        """Write what a claimed trial was on parts of the traffic, the last one's value apart."""
        storage = self._store.storage
        with self._store.locks.exclusive():
            if self._owns(claim, storage.get_trial(claim.trial_id)):
                storage.set_trial_intermediate_value(claim.trial_id, len(rungs), value)
                storage.set_trial_user_attr(claim.trial_id, RUNGS, rungs)

    def finish(self, claim: Claim, result: FinishedTrial, values: list[float] | None) -> bool:
        """Write what came of a claimed trial; False: it was taken away, and nothing is written.

        Args:
            claim: of this worker.
            result: to keep.
            values: of the objectives, for samplers; None: it is not complete.
        """
        storage = self._store.storage
        with self._store.locks.exclusive():
            if not self._owns(claim, storage.get_trial(claim.trial_id)):
                return False
            storage.set_trial_user_attr(claim.trial_id, RESULT, _written(result))
            state = TrialState.PRUNED if values is None else TrialState.COMPLETE
            storage.set_trial_state_values(claim.trial_id, state, values)
        self._store.settle()
        return True

    def release(self) -> None:
        """Give back what this worker has not finished, as if it had never tried."""
        with self._store.locks.exclusive():
            for trial in self.trials():
                holder = trial.user_attrs.get(WORKER, {})
                if not trial.state.is_finished() and holder.get("id") == self._worker:
                    free = {**holder, "id": None, "attempt": holder["attempt"] - 1}
                    self._store.storage.set_trial_user_attr(self._id_of(trial), WORKER, free)

    def leave(self) -> None:
        """Let others take over what is left."""
        self._store.locks.leave()

    def _new(self, number: int) -> Claim:
        made = create_trial(state=TrialState.RUNNING, user_attrs={WORKER: self._badge(1)})
        trial_id = self._store.storage.create_new_trial(self._study_id, made)
        trial = self._store.storage.get_trial(trial_id)
        if trial.number != number:
            raise RuntimeError(f"trial {trial.number} was made where {number} was due")
        return Claim(trial, trial_id, 1)

    def _take_over(self, trial: FrozenTrial) -> Claim | None:
        trial_id = self._id_of(trial)
        attempt = trial.user_attrs.get(WORKER, {}).get("attempt", 0) + 1
        self._store.storage.set_trial_user_attr(trial_id, WORKER, self._badge(attempt))
        claim = Claim(self._store.storage.get_trial(trial_id), trial_id, attempt)
        if attempt <= ATTEMPTS:
            return claim
        reason = f"{ATTEMPTS} workers died on it (killed from outside, or out of memory)"
        evaluation = Evaluation({}, infeasible=reason)
        self.finish(claim, FinishedTrial(trial.number, "infeasible", evaluation, reason), None)
        return None

    def _badge(self, attempt: int) -> dict[str, Any]:
        host = platform.node()
        return {"id": self._worker, "host": host, "pid": os.getpid(), "attempt": attempt}

    def _lives(self, trial: FrozenTrial) -> bool:
        worker = trial.user_attrs.get(WORKER, {}).get("id")
        return worker is not None and self._store.locks.lives(worker)

    def _owns(self, claim: Claim, trial: FrozenTrial) -> bool:
        holder = trial.user_attrs.get(WORKER, {})
        mine = holder.get("id") == self._worker and holder.get("attempt") == claim.attempt
        return mine and not trial.state.is_finished()

    def _id_of(self, trial: FrozenTrial) -> int:
        return self._store.storage.get_trial_id_from_study_id_trial_number(
            self._study_id, trial.number
        )


def key_of(candidate: Candidate) -> str:
    """Return a text that equal candidates share."""
    return json.dumps(dict(candidate), sort_keys=True)


def _written(result: FinishedTrial) -> dict[str, Any]:
    evaluation = result.evaluation
    return {
        "state": result.state,
        "reason": result.reason,
        "share": result.share,
        "candidate": dict(evaluation.candidate),
        "objectives": dict(evaluation.objectives),
        "violations": dict(evaluation.violations),
        "figures": dict(evaluation.figures),
        "infeasible": evaluation.infeasible,
    }


def finished_trial(trial: FrozenTrial) -> FinishedTrial:
    """Return what came of a trial that is finished."""
    kept = trial.user_attrs[RESULT]
    evaluation = Evaluation(
        kept["candidate"],
        kept["objectives"],
        kept["violations"],
        kept["figures"],
        kept["infeasible"],
    )
    found = FinishedTrial(trial.number, kept["state"], evaluation, kept["reason"])
    return replace(found, share=kept["share"])
