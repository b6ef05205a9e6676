"""`explain`: what a search has shown beside its recommendation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twin.search.judging.binding import Binding, binding
from twin.search.judging.error_of_difference import threshold
from twin.search.judging.importance import Importance, importance, spread_of
from twin.search.judging.pareto import Tried, distinct, pareto_set, ranked
from twin.search.judging.runs import Runs
from twin.search.judging.sensitivity import MOST_RUNS, Neighbour, sensitivity
from twin.search.judging.verdict import Judgement
from twin.search.knob import Candidate
from twin.search.objectives import OBJECTIVES, Objective
from twin.search.problem import SearchProblem

TEN = 10


@dataclass(frozen=True, slots=True)
class Explanation:
    """What trials say.

    Attributes:
        front: the Pareto set, by the first objective.
        top: the ten best, in order of rank.
        importance: by objective, each knob's share, largest first; empty: too few trials, or
            they are alike.
        alike: by objective in which trials are no farther apart than forecast error: how far,
            relative. What goes with so little says nothing of a real server.
        neighbours: of `around`, one knob turned.
        around: the policy that neighbours are compared with: the recommended one.
        default_binding, binding: of the default and the recommended policy on held-out traffic;
            None: it cannot run, or there is none but the default.
    """

    front: tuple[Tried, ...]
    top: tuple[Tried, ...]
    importance: dict[str, tuple[Importance, ...]]
    alike: dict[str, float]
    neighbours: tuple[Neighbour, ...]
    around: Candidate
    default_binding: Binding | None
    binding: Binding | None


def explain(
    problem: SearchProblem,
    trials: Sequence[Tried],
    judgement: Judgement,
    runs: Runs,
    *,
    experts: bool,
    most_runs: int = MOST_RUNS,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """Return what to show of a search.

    Args:
        problem: what was searched.
        trials: those over the whole of the search part, by number.
        judgement: what came of it.
        runs: what runs candidates.
        experts: whether the network is a mixture of experts.
        most_runs: evaluations around the recommended policy, at most.
        progress: told what is being run.
    """
    objectives = [OBJECTIVES[name] for name in problem.objectives]
    around = judgement.candidate
    if progress is not None:
        progress("turning one knob at a time")
    near = sensitivity(around, problem, runs, objectives, most=most_runs)
    shares, alike = what_matters(problem, trials, experts=experts)
    if progress is not None:
        progress("looking at what binds")
    return Explanation(
        front=tuple(pareto_set(trials, objectives)),
        top=tuple(ranked(trials, objectives)[:TEN]),
        importance=shares,
        alike=alike,
        neighbours=tuple(near),
        around=around,
        default_binding=_bound(runs, trials, {}),
        binding=_bound(runs, trials, around) if around else None,
    )


def what_matters(
    problem: SearchProblem, trials: Sequence[Tried], *, experts: bool
) -> tuple[dict[str, tuple[Importance, ...]], dict[str, float]]:
    """Return `Explanation.importance` and `Explanation.alike` of some trials."""
    objectives = [OBJECTIVES[name] for name in problem.objectives]
    spreads = {o.name: _alike(trials, o, experts=experts) for o in objectives}
    alike = {name: spread for name, spread in spreads.items() if spread is not None}
    shares = {
        o.name: () if o.name in alike else tuple(importance(trials, o, problem.defaults))
        for o in objectives
    }
    return shares, alike


def _alike(trials: Sequence[Tried], objective: Objective, *, experts: bool) -> float | None:
    """Return how far trials are apart, where that is less than the least forecast error."""
    spread = spread_of(trials, objective)
    least = threshold(objective.name, (), experts=experts)
    return spread if spread is not None and spread <= least else None


def _bound(runs: Runs, trials: Sequence[Tried], candidate: Candidate) -> Binding | None:
    told = next((t.evaluation for t in distinct(trials) if t.candidate == candidate), None)
    evaluation = told or runs.evaluate(candidate)
    if evaluation.infeasible is not None:
        return None
    whole = runs.whole(candidate)
    return binding(whole.summary, whole.inputs)
