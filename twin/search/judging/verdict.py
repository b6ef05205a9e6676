"""`judge`: what to recommend, after running the best candidates again on fresh traffic."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from twin.search.judging.confirm import Confirmation, Confirmer
from twin.search.judging.error_of_difference import same_prices
from twin.search.judging.pareto import Tried, distinct, ranked
from twin.search.judging.runs import Runs
from twin.search.judging.slim import slimmed
from twin.search.judging.wording import nothing_kept, sentence_of
from twin.search.knob import Candidate
from twin.search.objectives import OBJECTIVES
from twin.search.problem import SearchProblem

MOST_TRIED = 3
"""Candidates that are run again before the default is kept."""

Decision = Literal["adopt", "keep the default", "nothing keeps the constraints"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a search comes to.

    Attributes:
        decision: deploy the candidate, keep the scenario's own policy, or neither will do.
        sentence: the same for a reader, with the figures that decide.
        candidate: what is recommended; `{}`: the default.
        trial: number of the trial it comes from; None: the default, or nothing.
        confirmations: what was run again, in that order.
        best: the best trial that keeps the constraints; None: none does.
    """

    decision: Decision
    sentence: str
    candidate: Candidate
    trial: int | None
    confirmations: tuple[Confirmation, ...]
    best: Tried | None

    @property
    def chosen(self) -> Confirmation | None:
        """The confirmation of the recommended candidate; None: the default is kept."""
        return next((one for one in self.confirmations if one.accepted), None)

    @property
    def shown(self) -> Confirmation | None:
        """The confirmation to show: of the recommended candidate, else of the best one."""
        return self.chosen or (self.confirmations[0] if self.confirmations else None)


def judge(
    problem: SearchProblem,
    trials: Sequence[Tried],
    runs: Runs,
    *,
    experts: bool,
    seeds: int = 5,
    progress: Callable[[str], None] | None = None,
) -> Judgement:
    """Return what to believe of a search.

    The best candidate is freed of changes that it does not need and run again, beside the
    default, on the held-out traffic; its gains are those of these runs alone. One that breaks a
    constraint there, or gains no more than noise and forecast error, gives way to the next that
    may do better, at most `MOST_TRIED` of them; then the default is kept.

    Args:
        problem: what was searched.
        trials: those over the whole of the search part, by number.
        runs: what runs candidates again.
        experts: whether the network is a mixture of experts.
        seeds: how many fresh seeds; recordings are cut into twice as many stretches.
        progress: told what is being run.
    """
    if seeds < 2:
        raise ValueError("an interval takes at least two seeds")
    objectives = [OBJECTIVES[name] for name in problem.objectives]
    order = ranked(trials, objectives)
    if not order:
        sentence = nothing_kept([tried.evaluation for tried in distinct(trials)])
        return Judgement("nothing keeps the constraints", sentence, {}, None, (), None)
    confirmer = Confirmer(runs, objectives, problem.file.seed, seeds, experts)
    found: list[Confirmation] = []
    left = _before_default(order)
    while left and len(found) < MOST_TRIED:
        if progress is not None:
            progress(f"running trial {left[0].number} again")
        # Slimmed, it may be what an earlier one was already.
        slim = slimmed(left[0], runs, objectives)
        if not slim.candidate or any(slim.candidate == c.tried.candidate for c in found):
            left = left[1:]
            continue
        found.append(confirmer.confirm(slim))
        if found[-1].accepted:
            break
        left = [tried for tried in left[1:] if may_do_better(tried, found[-1])]
    best = order[0]
    chosen = found[-1] if found and found[-1].accepted else None
    decision: Decision = "keep the default" if chosen is None else "adopt"
    return Judgement(
        decision,
        sentence_of(chosen, found, order, objectives),
        {} if chosen is None else chosen.tried.candidate,
        None if chosen is None else chosen.tried.number,
        tuple(found),
        best,
    )


def _before_default(order: Sequence[Tried]) -> list[Tried]:
    """What ranks above the default; all, where the default breaks a constraint."""
    place = next((i for i, tried in enumerate(order) if not tried.candidate), len(order))
    return list(order[:place])


def may_do_better(tried: Tried, failed: Confirmation) -> bool:
    """Whether a candidate that ranks lower could stand where another has fallen.

    After a broken constraint: if on the trials' traffic it kept that constraint by as much more
    as the other one missed it by. After a gain inside forecast error: if less error is to be
    reckoned with, as fewer things changed.
    """
    seen = failed.tried.evaluation.violations
    for name, missed in failed.broken.items():
        if tried.evaluation.violations.get(name, 0.0) > seen.get(name, 0.0) - missed:
            return False
    if failed.broken or not failed.gains:
        return True
    return same_prices(tried.candidate) and not same_prices(failed.tried.candidate)
