"""Which knobs the trials' results go with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twin.engine.result import Floats
from twin.search.judging.pareto import Tried, distinct
from twin.search.judging.told import value_text
from twin.search.knob import Value
from twin.search.objectives import Objective

MOST_LEVELS = 6
"""A knob of more distinct numbers is cut into this many levels of about as many trials."""

FEWEST_TRIALS = 20
"""Fewer simulated trials say nothing of importance."""


@dataclass(frozen=True, slots=True)
class Importance:
    """How much of an objective's variation goes with one knob.

    Attributes:
        key: the knob's.
        share: of the variance of the objective's ranks between the knob's levels (epsilon
            squared: the correlation ratio, freed of what levels explain by chance), in [0, 1].
        levels: median of the objective at each level, by its name, in the knob's order.
        trials: at each level.
    """

    key: str
    share: float
    levels: Mapping[str, float]
    trials: Mapping[str, int]


def importance(
    trials: Sequence[Tried],
    objective: Objective,
    defaults: Mapping[str, Value],
) -> list[Importance]:
    """Return each knob's share, largest first; nothing with fewer than `FEWEST_TRIALS`.

    Args:
        trials: all of a search; those that could not be simulated don't count.
        objective: whose variation is explained.
        defaults: what a knob stands at that a candidate leaves out, by key.

    Ranks make it blind to units and to a few absurd values. Knobs are looked at one at a time:
    an effect that two have only together is nobody's, and as a sampler goes where it is good,
    knobs that moved together share what either did.
    """
    run = [t.evaluation for t in distinct(trials) if objective.name in t.evaluation.objectives]
    if len(run) < FEWEST_TRIALS:
        return []
    values = np.array([e.objectives[objective.name] for e in run])
    found = []
    for key in dict.fromkeys(key for e in run for key in e.candidate):
        names, order = _levels([e.candidate.get(key, defaults.get(key)) for e in run])
        level = np.array([order.index(name) for name in names])
        share = explained(ranks(values), level)
        medians = {name: float(np.median(values[level == i])) for i, name in enumerate(order)}
        counts = {name: int((level == i).sum()) for i, name in enumerate(order)}
        found.append(Importance(key, share, medians, counts))
    return sorted(found, key=lambda one: (-one.share, one.key))


def spread_of(trials: Sequence[Tried], objective: Objective) -> float | None:
    """Return how far trials are apart in an objective: (largest - smallest) / smallest, absolute.

    None: there are too few for importance anyway, or the smallest is 0 and others are not.
    """
    values = [
        t.evaluation.objectives[objective.name]
        for t in distinct(trials)
        if objective.name in t.evaluation.objectives
    ]
    if len(values) < FEWEST_TRIALS:
        return None
    low, high = min(values), max(values)
    if low == high:
        return 0.0
    return (high - low) / abs(low) if low else None


def explained(values: Floats, level: NDArray[np.int64]) -> float:
    """Return epsilon squared: shape (n,) values and the level of each; 0 to 1.

    1 - (within-level mean square) / (total mean square), not below 0 (Kelley 1935).
    """
    total = float(((values - values.mean()) ** 2).sum())
    levels = np.unique(level)
    free = values.size - levels.size
    if total == 0 or levels.size < 2 or free < 1:
        return 0.0
    within = sum(float(((v - v.mean()) ** 2).sum()) for v in (values[level == i] for i in levels))
    return max(0.0, 1 - (within / free) / (total / (values.size - 1)))


def ranks(values: Floats) -> Floats:
    """Return ranks from 0, equal values sharing their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    after = np.cumsum(counts)
    middle: Floats = after - (counts + 1) / 2
    return middle[place]


def _levels(values: Sequence[Value]) -> tuple[list[str], list[str]]:
    """Return each value's level by name, and the levels in order."""
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    kinds = sorted(set(numbers))
    others = list(dict.fromkeys(value_text(v) for v in values if v is None or isinstance(v, str)))
    others += [value_text(v) for v in (False, True) if any(x is v for x in values)]
    if len(kinds) <= MOST_LEVELS:
        return [value_text(v) for v in values], [*sorted(others), *map(value_text, kinds)]
    cuts = np.quantile(numbers, np.linspace(0, 1, MOST_LEVELS + 1)[1:-1])
    bins = np.searchsorted(cuts, kinds, side="left")
    name_of: dict[float, str] = {}
    order: list[str] = []
    for i in range(MOST_LEVELS):
        inside = [kind for kind, b in zip(kinds, bins, strict=True) if b == i]
        if not inside:
            continue
        low, high = value_text(inside[0]), value_text(inside[-1])
        order.append(low if low == high else f"{low} to {high}")
        name_of |= dict.fromkeys(inside, order[-1])
    names = [
        name_of[v] if isinstance(v, int | float) and not isinstance(v, bool) else value_text(v)
        for v in values
    ]
    return names, [*sorted(others), *order]
