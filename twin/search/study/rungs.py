"""Which first parts of the traffic tell good candidates from weak ones: decided once a study."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from twin.search.evaluation import Evaluates, Evaluation
from twin.search.knob import Candidate
from twin.search.problem import SearchProblem

Halving = Literal["never", "where it represents", "always"]
"""When weak candidates stop early: not at all; after parts that represent the whole; after all."""

SHARES = (1 / 9, 1 / 3)
"""Of the search part, before all of it."""

TOLERANCE = 0.25
"""How far figures of a part may be off those of the whole.

Of the default in the examples, by TTFT, gaps and goodput, parts of traffic that keeps its kind are
up to 21 % off (noise of fewer requests), those of traffic that grows, or whose queue does, 28 % and
more. And where load changes figures by more than that, it changes which candidate is the better.
"""


@dataclass(frozen=True, slots=True)
class Rung:
    """A first part of the traffic on which candidates may be compared.

    Attributes:
        share: of the search part.
        off: how far the figures of one policy are off those of the whole, relative; None: there
            are none to compare.
        used: whether weak candidates stop after it.
    """

    share: float
    off: float | None
    used: bool


def measured_rungs(problem: SearchProblem, halving: Halving, evaluate: Evaluates) -> list[Rung]:
    """Return the rungs of a study, from the first recommended point that gives figures.

    That is the default, unless it cannot be.

    Args:
        problem: what is searched.
        halving: when weak candidates stop early.
        evaluate: gives figures.
    """
    if halving == "never":
        return []
    rungs = []
    start, whole = _reference(problem, evaluate)
    for share in SHARES:
        off = None
        if whole is not None:
            off = _distance(evaluate(start, share), whole, problem.objectives[0])
        near = off is not None and off <= TOLERANCE
        rungs.append(Rung(share, off, used=near or halving == "always"))
    return rungs


def told_rungs(rungs: Sequence[Rung]) -> str | None:
    """Return in a sentence what parts of the traffic do not represent all of it; None: none."""
    far = [rung for rung in rungs if rung.off is None or rung.off > TOLERANCE]
    if not far:
        return None
    shares = " and the first ".join(f"{round(100 * rung.share)} %" for rung in far)
    known = [f"{round(100 * rung.off)} %" for rung in far if rung.off is not None]
    why = "no figures to compare"
    if known:
        why = f"figures of the same policy are {' and '.join(known)} off there"
    if far[0].used:
        return (
            f"Weak candidates were stopped after the first {shares} of the traffic, as --halving "
            f"asks, though this does not represent all of it ({why}): good ones may be among them."
        )
    return (
        f"Weak candidates were not stopped early after the first {shares} of the traffic, which "
        f"does not represent all of it ({why})."
    )


def _reference(problem: SearchProblem, evaluate: Evaluates) -> tuple[Candidate, Evaluation | None]:
    for start in problem.starts:
        whole = evaluate(start, 1.0)
        value = whole.objectives.get(problem.objectives[0])
        if whole.infeasible is None and value is not None and math.isfinite(value):
            return start, whole
    return {}, None


def _distance(part: Evaluation, whole: Evaluation, objective: str) -> float | None:
    """Return how far a part is off, in the objective or in how much limits are broken.

    Those are what candidates are compared by. Limits that are kept on both do not count, however
    amply.
    """
    if part.infeasible is not None:
        return None
    here, there = part.objectives[objective], whole.objectives[objective]
    if here != there and (there == 0 or not math.isfinite(here)):
        return None
    value = abs(here - there) / abs(there) if there else 0.0
    broken = abs(part.broken - whole.broken) / (1 + whole.broken)
    return max(value, broken)
