"""A worker: takes a trial, draws its candidate, has it evaluated, writes what came of it."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import optuna

from twin.search.evaluation import Evaluates, Evaluation
from twin.search.problem import SearchProblem
from twin.search.study.drawing import Drawing, draw
from twin.search.study.halving import goes_on, standing
from twin.search.study.ledger import DRAWS, Claim, Ledger, key_of
from twin.search.study.options import FinishedTrial, StudyOptions
from twin.search.study.rungs import Halving, Rung
from twin.search.study.samplers import SAMPLERS, sampler_for
from twin.search.study.storage import Store, open_store

_DRAWS = 10
"""Of a candidate, at most, until one is new."""
_WAIT_S = 0.2
"""Between two looks for a trial while others work on all that are left."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A study, as its workers know it.

    Attributes:
        problem: what is searched.
        options: of the run.
        name: of the study.
        sampler: by name.
        halving: when weak candidates stop early.
        population: of a genetic sampler.
        rungs: parts of the traffic that come before all of it, as the study keeps them.
    """

    problem: SearchProblem
    options: StudyOptions
    name: str
    sampler: str
    halving: Halving
    population: int
    rungs: tuple[Rung, ...] = ()

    def open(self) -> Store:
        """Open the study's storage."""
        return open_store(self.options.storage, self.options.out, self.name)


@dataclass(frozen=True, slots=True)
class Worker:
    """Runs trials of a plan until there are none left.

    Attributes:
        plan: the study.
        store: where it is kept.
        ledger: its trials.
        evaluate: gives figures.
    """

    plan: Plan
    store: Store
    ledger: Ledger
    evaluate: Evaluates

    def run(self, goes_on: Callable[[], bool], told: Callable[[], None]) -> None:
        """Work until all trials of the study are finished, by whomever.

        Args:
            goes_on: asked before each trial; false ends the work.
            told: called after each trial.
        """
        while goes_on():
            claim = self.ledger.claim()
            if claim is not None:
                self._try(claim)
                told()
            elif self.ledger.complete():
                return
            else:
                time.sleep(_WAIT_S)

    def _try(self, claim: Claim) -> None:
        plan = self.plan
        drawing = self._drawn(claim)
        self.ledger.keep(claim, drawing, {})
        result = self._seen(claim, drawing)
        evaluation = result.evaluation
        if evaluation.violations:
            self.ledger.keep(claim, Drawing(drawing.candidate), evaluation.violations)
        values = None
        if result.state == "complete":
            values = [float(evaluation.objectives[name]) for name in plan.problem.objectives]
        self.ledger.finish(claim, result, values)

    def _drawn(self, claim: Claim) -> Drawing:
        """Return a candidate that is not known yet, if one comes up in a few draws.

        A known one would give known figures: all meet the same requests.
        """
        plan, number = self.plan, claim.trial.number
        if claim.trial.params:  # an earlier attempt had drawn it already
            return self._draw(claim, claim.trial.user_attrs.get(DRAWS, 0))
        known = self.ledger.candidates()
        for again in range(_DRAWS):
            drawing = self._draw(claim, again)
            if number < len(plan.problem.starts) or key_of(drawing.candidate) not in known:
                break
        return drawing

    def _draw(self, claim: Claim, again: int) -> Drawing:
        plan = self.plan
        sampler = sampler_for(
            plan.sampler, plan.options.seed, (claim.trial.number, again), plan.population
        )
        # A study of its own for each draw: its sampler, and a fresh look at the others.
        study = optuna.load_study(study_name=plan.name, storage=self.store.storage, sampler=sampler)
        everything = SAMPLERS[plan.sampler].genetic
        drawing = draw(plan.problem, study, claim.trial, everything=everything)
        return replace(drawing, again=again)

    def _seen(self, claim: Claim, drawing: Drawing) -> FinishedTrial:
        """Return what becomes of a candidate, seen on more and more of the traffic."""
        number, objective = claim.trial.number, self.plan.problem.objectives[0]
        rungs: list[list[float]] = []
        for share in (*(rung.share for rung in self.plan.rungs if rung.used), 1.0):
            evaluation = self.evaluate(drawing.candidate, share)
            reason = _no_figures(evaluation)
            if reason is not None:
                return FinishedTrial(number, "infeasible", evaluation, reason, share)
            if share == 1:
                break
            rungs.append(standing(evaluation, objective))
            self.ledger.report(claim, rungs, float(evaluation.objectives[objective]))
            known = number < len(self.plan.problem.starts)
            if not known and not goes_on(rungs, number, self.ledger.trials()):
                reason = f"not in the best third on the first {round(100 * share)} % of the traffic"
                return FinishedTrial(number, "pruned", evaluation, reason, share)
        return FinishedTrial(number, "complete", evaluation)


def _no_figures(evaluation: Evaluation) -> str | None:
    """Return why an evaluation cannot be compared with others, if so."""
    if evaluation.infeasible is not None:
        return evaluation.infeasible
    endless = [name for name, value in evaluation.objectives.items() if not math.isfinite(value)]
    return f"{endless[0]} is not finite" if endless else None
