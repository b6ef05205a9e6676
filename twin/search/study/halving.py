"""Successive halving over the length of the traffic: weak candidates stop after a part of it.

Asynchronous (Li et al., "A System for Massively Parallel Hyperparameter Tuning", 2018): a candidate
goes on when it is in the best third of those that have come as far by then, so nobody waits.
"""

from collections.abc import Mapping, Sequence

from optuna.trial import FrozenTrial

from twin.search.evaluation import Evaluation
from twin.search.objectives import OBJECTIVES
from twin.search.study.ledger import RUNGS

_KEEP_ONE_OF = 3


def standing(evaluation: Evaluation, objective: str) -> list[float]:
    """Return what candidates are compared by, smaller is better: broken limits, then objective."""
    value = evaluation.objectives[objective]
    return [evaluation.broken, value if OBJECTIVES[objective].direction == "minimize" else -value]


def goes_on(own: Sequence[Sequence[float]], number: int, trials: Sequence[FrozenTrial]) -> bool:
    """Whether a trial is seen on more of the traffic.

    Args:
        own: its standings so far, one a rung.
        number: of the trial.
        trials: of the study.
    """
    rung = len(own) - 1
    others = [
        _rungs(trial.user_attrs)[rung]
        for trial in trials
        if trial.number != number and len(_rungs(trial.user_attrs)) > rung
    ]
    better = sum(list(other) < list(own[rung]) for other in others)
    return better < max((len(others) + 1) // _KEEP_ONE_OF, 1)


def _rungs(attributes: Mapping[str, Sequence[Sequence[float]]]) -> Sequence[Sequence[float]]:
    return attributes.get(RUNGS, ())
