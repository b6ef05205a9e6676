"""`knee`: where goodput stops following the load."""

from collections.abc import Sequence
from dataclasses import dataclass

from twin.sweep.point import LoadPoint
from twin.sweep.sweep import LoadSweep

FOLLOWS = 0.5
"""Goodput follows while more load brings at least this share of what load brought at first."""
APART = 0.1
"""Loads this far apart, relatively, are compared: closer ones differ by chance as much."""


@dataclass(frozen=True, slots=True)
class Knee:
    """Where goodput bends off.

    Attributes:
        low: highest load up to which goodput follows; None: not even at the lowest.
        high: the next load, where it no longer does; None: it does at all of them.
    """

    low: float | None
    high: float | None


def knee(sweep: LoadSweep) -> Knee:
    """Return where goodput stops following the load.

    Goodput per load at the lowest load is the measure. At each further load, goodput gained since
    a load at least `APART` below it, per load added, must be at least `FOLLOWS` times that. The
    first load where it is not ends the search. At a lowest load whose queue grows, or which yields
    no goodput, there is nothing to follow.
    """
    points = sweep.points
    if not points or points[0].queue_grows or not points[0].goodput_per_s:
        return Knee(None, points[0].offered if points else None)
    measure = points[0].goodput_per_s / points[0].offered
    for index in range(1, len(points)):
        if _gain(points, index) < FOLLOWS * measure:
            return Knee(points[index - 1].offered, points[index].offered)
    return Knee(points[-1].offered, None)


def _gain(points: Sequence[LoadPoint], index: int) -> float:
    """Goodput gained per load added since the nearest load far enough below."""
    here = points[index]
    for before in reversed(points[:index]):
        if before.offered * (1 + APART) <= here.offered:
            gained = (here.goodput_per_s or 0.0) - (before.goodput_per_s or 0.0)
            return gained / (here.offered - before.offered)
    return (here.goodput_per_s or 0.0) / here.offered
