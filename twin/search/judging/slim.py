"""Takes out of a candidate what it does not need."""

from collections.abc import Sequence
from dataclasses import replace

from twin.search.evaluation import Evaluation
from twin.search.judging.pareto import TIE, Tried
from twin.search.judging.runs import Runs
from twin.search.objectives import Objective

_SLACK = 0.05
"""How much closer to a limit a slimmer candidate may come, relative to the limit."""


def slimmed(tried: Tried, runs: Runs, objectives: Sequence[Objective]) -> Tried:
    """Return a candidate without the changes that neither objectives nor constraints need.

    Each key is put back to the default, one after the other, and stays there if every objective
    remains within `TIE` of the candidate's own value, or is better. All this on the traffic of
    the trials: what is left still has to stand on fresh traffic.
    """
    best = tried.evaluation
    kept = dict(best.candidate)
    current = best
    for key in best.candidate:
        fewer = {name: value for name, value in kept.items() if name != key}
        evaluation = runs.evaluate(fewer)
        if evaluation.meets and _as_good(evaluation, best, objectives):
            kept, current = fewer, evaluation
    return tried if len(kept) == len(best.candidate) else replace(tried, evaluation=current)


def _as_good(one: Evaluation, best: Evaluation, objectives: Sequence[Objective]) -> bool:
    for objective in objectives:
        mine, its = one.objectives[objective.name], best.objectives[objective.name]
        loss = its - mine if objective.direction == "maximize" else mine - its
        if loss > TIE * abs(its):
            return False
    # A value close to its limit here may well lie beyond it on other traffic.
    return all(
        value <= max(best.violations.get(name, 0.0) + _SLACK, -0.5)
        for name, value in one.violations.items()
    )
