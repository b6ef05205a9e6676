"""Takes out of a candidate what it does not need."""

from collections.abc import Sequence
from dataclasses import replace

from twin.search.evaluation import Evaluation
from twin.search.judging.pareto import TIE, Tried
from twin.search.judging.runs import Runs
from twin.search.objectives import Objective

EARNS = 0.1
"""Share of the gain over the default that a change has to bring to stay."""

GIVEN_UP = 0.2
"""Share of the gain over the default that may be lost in all."""

_SLACK = 0.05
"""How much closer to a limit a slimmer candidate may come, relative to the limit."""


def slimmed(tried: Tried, runs: Runs, objectives: Sequence[Objective]) -> Tried:
    """Return a candidate without the changes that neither objectives nor constraints need.

    Each key is put back to the default, one after the other, and stays there if it brought less
    than `EARNS` of the gain over the default, or no more than `TIE`: small differences are those
    that forecasts get wrong, and each is one more thing to explain and to deploy. All this on the
    traffic of the trials: what is left still has to stand on fresh traffic.
    """
    default, best = runs.evaluate({}), tried.evaluation
    current = best
    for key in best.candidate:
        fewer = {name: value for name, value in current.candidate.items() if name != key}
        evaluation = runs.evaluate(fewer)
        if evaluation.meets and _as_good(evaluation, (current, best, default), objectives):
            current = evaluation
    return tried if current is best else replace(tried, evaluation=current)


def _as_good(
    one: Evaluation,
    others: tuple[Evaluation, Evaluation, Evaluation],
    objectives: Sequence[Objective],
) -> bool:
    """Whether nothing that counts is lost against the current and the best, default being 0."""
    for objective in objectives:
        mine = one.objectives[objective.name]
        sign = 1 if objective.direction == "maximize" else -1
        current, best = (other.objectives[objective.name] for other in others[:2])
        default = others[2].objectives.get(objective.name, best)
        gain = max(0.0, sign * (best - default))
        if sign * (current - mine) > max(TIE * abs(current), EARNS * gain):
            return False
        if sign * (best - mine) > max(TIE * abs(best), GIVEN_UP * gain):
            return False
    # A value close to its limit here may well lie beyond it on other traffic.
    return all(
        value <= max(others[1].violations.get(name, 0.0) + _SLACK, -0.5)
        for name, value in one.violations.items()
    )
