"""In which order things are measured, so that any part of a plan is a good plan."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from calibrate.measuring.item import Item

Shape = dict[str, int]


def coarse_to_fine(axes: Mapping[str, Sequence[int]]) -> list[Shape]:
    """Return all combinations, ends and middles of every axis before what lies between.

    A point belongs to the level of its finest coordinate, so each level is a grid of its own.
    """
    levels = {axis: _levels(len(values)) for axis, values in axes.items()}
    points = product(*(range(len(values)) for values in axes.values()))
    ranked = sorted(points, key=lambda p: _rank(p, list(levels.values())))
    return [
        {axis: values[i] for (axis, values), i in zip(axes.items(), point, strict=True)}
        for point in ranked
    ]


def _rank(point: tuple[int, ...], levels: list[list[int]]) -> tuple[int, int, tuple[int, ...]]:
    fineness = [level[i] for level, i in zip(levels, point, strict=True)]
    return max(fineness, default=0), sum(fineness), point


def _levels(count: int) -> list[int]:
    """Level of each index: 0 at both ends, 1 in the middle, 2 at the quarters, and so on."""
    found = [0] * count
    pending = [(0, count - 1, 1)]
    while pending:
        low, high, level = pending.pop()
        if high - low < 2:
            continue
        middle = (low + high) // 2
        found[middle] = level
        pending += [(low, middle, level + 1), (middle, high, level + 1)]
    return found


def interleaved(queues: Iterable[tuple[Sequence[Item], float]]) -> list[Item]:
    """Return the items of several queues as one, each in its order.

    Args:
        queues: items and weight. At any point the seconds spent on a queue are in proportion to
            its weight, as far as it has items left.
    """
    ready: list[tuple[float, int, int]] = []
    given = [(list(items), weight) for items, weight in queues]
    for number, (items, weight) in enumerate(given):
        if items:
            heapq.heappush(ready, (items[0].box_s / weight, number, 0))
    merged = []
    while ready:
        spent, number, position = heapq.heappop(ready)
        items, weight = given[number]
        merged.append(items[position])
        if position + 1 < len(items):
            following = spent + items[position + 1].box_s / weight
            heapq.heappush(ready, (following, number, position + 1))
    return merged
