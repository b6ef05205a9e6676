"""How far a study is: trials done, the best so far, what is left."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from twin.search.objectives import OBJECTIVES
from twin.search.study.ledger import Ledger
from twin.search.study.options import FinishedTrial
from twin.search.study.worker import Plan


@dataclass(frozen=True, slots=True)
class StudyProgress:
    """How far a study is.

    Attributes:
        done: finished trials, those of earlier runs and other machines included.
        total: trials in the end.
        best: best value of the first objective among those that keep every limit; None: none yet.
        unit: of it.
        best_number: of its trial.
        left_s: seconds that the rest will take at the pace of this run; None: not known yet.
    """

    done: int
    total: int
    best: float | None
    unit: str
    best_number: int | None
    left_s: float | None


class Watch:
    """Tells how far a study is.

    Args:
        ledger: of the study.
        plan: of the study.
        told: is shown it; None: nobody is.
    """

    def __init__(
        self, ledger: Ledger, plan: Plan, told: Callable[[StudyProgress], None] | None
    ) -> None:
        self._ledger, self._plan, self._told = ledger, plan, told
        self._since = time.monotonic()
        self._done_before: int | None = None

    def look(self) -> None:
        """Tell."""
        if self._told is None:
            return
        trials = self._ledger.finished()
        done, total = len(trials), self._plan.options.trials
        if self._done_before is None:
            self._done_before = done
        fresh = done - self._done_before
        spent_s = time.monotonic() - self._since
        objective = OBJECTIVES[self._plan.problem.objectives[0]]
        best = best_of(trials, objective.name)
        self._told(
            StudyProgress(
                done,
                total,
                None if best is None else best.evaluation.objectives[objective.name],
                objective.unit_at(self._plan.problem.usd_per_gpu_hour),
                None if best is None else best.number,
                spent_s / fresh * (total - done) if fresh else None,
            )
        )


def best_of(trials: list[FinishedTrial], objective: str) -> FinishedTrial | None:
    """Return the trial with the best value of an objective that keeps every limit."""
    kept = [trial for trial in trials if trial.state == "complete" and trial.evaluation.meets]
    if not kept:
        return None
    sign = 1 if OBJECTIVES[objective].direction == "minimize" else -1
    return min(
        kept, key=lambda trial: (sign * trial.evaluation.objectives[objective], trial.number)
    )
