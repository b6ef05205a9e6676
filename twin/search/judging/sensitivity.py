"""What one step with one knob away from a policy does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twin.search.evaluation import Evaluation
from twin.search.judging.gains import relative_gain
from twin.search.judging.runs import Runs
from twin.search.judging.told import value_text
from twin.search.knob import Candidate, Choices, Knob, Powers, Value
from twin.search.objectives import Objective
from twin.search.problem import SearchProblem
from twin.search.proposal import has_effect, value_at

MOST_RUNS = 36
"""Evaluations at most."""

_SPAN_STEPS = 2
"""How many steps of a span a neighbour lies away: one hardly ever shows."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A policy that differs in one knob.

    Attributes:
        key: the knob's.
        value: what it is turned to.
        relative: gain in each objective against the policy itself, above 0: better; empty: it
            cannot be simulated.
        broken: constraints that it breaks, by how much.
        infeasible: why it cannot be simulated.
    """

    key: str
    value: str
    relative: Mapping[str, float | None]
    broken: Mapping[str, float]
    infeasible: str | None = None


def sensitivity(
    candidate: Candidate,
    problem: SearchProblem,
    runs: Runs,
    objectives: Sequence[Objective],
    *,
    most: int = MOST_RUNS,
) -> list[Neighbour]:
    """Return what the neighbours of a policy give on the trials' traffic, knob by knob.

    Args:
        candidate: the policy; `{}`: the default.
        problem: whose knobs may be turned; those without effect beside the policy's other values
            are passed over.
        runs: what runs candidates.
        objectives: whose changes are told.
        most: evaluations at most: every knob has its nearest neighbour before any has a second.
    """
    here = runs.evaluate(candidate)
    if here.infeasible is not None:
        return []
    queues = {
        knob.key: neighbours(knob, value_at(problem, candidate, knob.key))
        for knob in problem.knobs
        if has_effect(problem, candidate, knob)
    }
    asked: list[tuple[str, Value]] = []
    for depth in range(max(map(len, queues.values()), default=0)):
        asked += [(key, queue[depth]) for key, queue in queues.items() if depth < len(queue)]
    order = list(queues)
    kept = sorted(asked[:most], key=lambda pair: order.index(pair[0]))
    return [
        _neighbour(
            key, value, here, runs.evaluate(_turned(candidate, key, value, problem)), objectives
        )
        for key, value in kept
    ]


def neighbours(knob: Knob, value: Value) -> list[Value]:
    """Return the values next to one in a knob's domain; all others of choices."""
    domain = knob.domain
    if isinstance(domain, Choices):
        return [other for other in domain.values if other != value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return [domain.low, domain.high]
    if isinstance(domain, Powers):
        powers = [1 << p for p in range(64) if domain.low <= 1 << p <= domain.high]
        below = [p for p in powers if p < value][-1:]
        return [*below, *[p for p in powers if p > value][:1]]
    step = domain.step * _SPAN_STEPS
    beside = (max(domain.low, value - step), min(domain.high, value + step))
    whole = all(float(x).is_integer() for x in (domain.low, domain.step))
    found = [round(x) if whole else round(x, 10) for x in beside]
    return [x for x in found if x != value]


def _turned(
    candidate: Candidate, key: str, value: Value, problem: SearchProblem
) -> dict[str, Value]:
    turned = {name: old for name, old in candidate.items() if name != key}
    return turned if value_at(problem, {}, key) == value else {**turned, key: value}


def _neighbour(
    key: str, value: Value, here: Evaluation, there: Evaluation, objectives: Sequence[Objective]
) -> Neighbour:
    if there.infeasible is not None:
        return Neighbour(key, value_text(value), {}, {}, there.infeasible)
    relative = {
        o.name: relative_gain(here.objectives[o.name], there.objectives[o.name], o)
        for o in objectives
    }
    broken = {name: v for name, v in there.violations.items() if v > 0}
    return Neighbour(key, value_text(value), relative, broken)
