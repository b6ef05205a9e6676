"""Which candidates are worth a look, and in what order."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from twin.search.evaluation import Evaluation
from twin.search.knob import Candidate
from twin.search.objectives import Objective

TIE = 0.005
"""Relative difference up to which two candidates are equally good: then the next objective
decides, and at last the fewer changes."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial over the whole of the search part, or a candidate that could not be simulated."""

    number: int
    evaluation: Evaluation

    @property
    def candidate(self) -> Candidate:
        """What was tried."""
        return self.evaluation.candidate


def candidate_key(candidate: Candidate) -> str:
    """Return a text that equal candidates share."""
    return json.dumps(dict(candidate), sort_keys=True)


def distinct(trials: Sequence[Tried]) -> list[Tried]:
    """Return each candidate once, as its first trial."""
    seen: dict[str, Tried] = {}
    for tried in trials:
        seen.setdefault(candidate_key(tried.candidate), tried)
    return list(seen.values())


def better(a: float, b: float, objective: Objective) -> bool:
    """Whether `a` is better than `b`."""
    return a > b if objective.direction == "maximize" else a < b


def pareto_set(trials: Sequence[Tried], objectives: Sequence[Objective]) -> list[Tried]:
    """Return the candidates that keep all constraints and that no other beats.

    One beats another that is at least as good in every objective and better in one. Sorted by
    the first objective, best first.
    """
    kept = [tried for tried in distinct(trials) if tried.evaluation.meets]

    def loss(tried: Tried) -> tuple[float, ...]:
        values = tried.evaluation.objectives
        return tuple(_loss(values[o.name], o) for o in objectives)

    front: list[Tried] = []
    best: list[tuple[float, ...]] = []
    # In this order a candidate can only be beaten by one before it.
    for tried in sorted(kept, key=lambda t: (loss(t), t.number)):
        mine = loss(tried)
        if not any(_beats(other, mine) for other in best):
            front.append(tried)
            best.append(mine)
    return front


def ranked(trials: Sequence[Tried], objectives: Sequence[Objective]) -> list[Tried]:
    """Return the candidates that keep all constraints, best first.

    The first objective decides; those within `TIE` of the best left are told apart by the next
    one, and in the end by how few keys they change.
    """
    left = [tried for tried in distinct(trials) if tried.evaluation.meets]
    return _in_order(left, list(objectives))


def _in_order(left: list[Tried], objectives: list[Objective]) -> list[Tried]:
    if not objectives or len(left) < 2:
        return sorted(left, key=lambda tried: (len(tried.candidate), tried.number))
    objective = objectives[0]
    name = objective.name
    rest = sorted(left, key=lambda t: (_loss(t.evaluation.objectives[name], objective), t.number))
    order: list[Tried] = []
    while rest:
        best = rest[0].evaluation.objectives[name]
        tied = [t for t in rest if abs(t.evaluation.objectives[name] - best) <= TIE * abs(best)]
        order += _in_order(tied, objectives[1:])
        rest = rest[len(tied) :]
    return order


def _loss(value: float, objective: Objective) -> float:
    return -value if objective.direction == "maximize" else value


def _beats(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))
