"""`ResidualGrid`: what measurements say beyond a physics form, interpolated in log coordinates."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodels.ops import Source

Index = tuple[int, ...]
Physics = Callable[..., float]
"""Seconds by the physics form at a point of the grid; one argument an axis."""


class ResidualGrid:
    """Log ratio of measured to physical seconds on a grid, possibly with gaps.

    Inside, the ratio is multilinear in the logarithms of the coordinates. A gap is filled from the
    straight lines along each axis between the nearest measured neighbours, the nearer the better:
    by their weighted median, since kernels switch tiles at different places along each axis and
    one of three may be off. Outside, the ratio of the nearest edge holds.

    Ratios are worked out when first asked for: a run touches few of a table's points.

    Args:
        columns: coordinates of the rows, one array an axis; values above 0.
        seconds: what was measured, one a row.
        physics: the form, called with one value an axis.
        trust: how much each axis counts where gaps are filled; equal by default.
    """

    def __init__(
        self,
        columns: Sequence[NDArray[np.generic]],
        seconds: NDArray[np.generic],
        physics: Physics,
        trust: Sequence[float] = (),
    ) -> None:
        self._trust = tuple(trust) or (1.0,) * len(columns)
        axes, positions = [], []
        for column in columns:
            values, position = np.unique(column, return_inverse=True)
            axes.append(values)
            positions.append(position)
        dense = np.full([len(axis) for axis in axes], np.nan)
        dense[tuple(positions)] = seconds
        self._physics = physics
        self._seconds = dense
        self._axes: list[list[float]] = [axis.astype(float).tolist() for axis in axes]
        self._logs: list[list[float]] = [np.log(axis).tolist() for axis in axes]
        self._known: dict[Index, float] = {}
        self._filled: dict[Index, tuple[float, bool]] = {}

    @property
    def axes(self) -> list[list[float]]:
        """Sorted coordinates of each axis."""
        return self._axes

    def at(self, *point: float) -> tuple[float, Source]:
        """Return the log ratio at a point, and how it was obtained."""
        sides, inside = [], True
        for axis, logs, value in zip(self._axes, self._logs, point, strict=True):
            side, within = _bracket(axis, logs, value)
            sides.append(side)
            inside = inside and within
        total = weight = 0.0
        measured = len(sides) > 0
        for corner in product(*sides):
            share = math.prod(part for _, part in corner)
            ratio, sound = self._at_index(tuple(index for index, _ in corner))
            total += share * ratio
            weight += share
            inside = inside and sound
            measured = measured and self._has(tuple(index for index, _ in corner))
        if not inside:
            return total / weight, Source.EXTRAPOLATED
        exact = measured and all(len(side) == 1 for side in sides)
        return total / weight, Source.TABLE if exact else Source.INTERPOLATED

    def _has(self, index: Index) -> bool:
        return not math.isnan(self._seconds[index])

    def _ratio(self, index: Index) -> float:
        ratio = self._known.get(index)
        if ratio is None:
            point = [axis[i] for axis, i in zip(self._axes, index, strict=True)]
            ratio = math.log(float(self._seconds[index]) / self._physics(*point))
            self._known[index] = ratio
        return ratio

    def _at_index(self, index: Index) -> tuple[float, bool]:
        """The ratio of a grid point, and whether it is measured or lies between measured ones."""
        if self._has(index):
            return self._ratio(index), True
        filled = self._filled.get(index)
        if filled is None:
            filled = self._filled[index] = self._fill(index)
        return filled

    def _fill(self, index: Index) -> tuple[float, bool]:
        between, beside = [], []
        for axis, logs in enumerate(self._logs):
            below, above = self._neighbours(index, axis)
            if below is not None and above is not None:
                low, high = logs[below[axis]], logs[above[axis]]
                share = (logs[index[axis]] - low) / (high - low)
                ratio = self._ratio(below) * (1 - share) + self._ratio(above) * share
                between.append((ratio, self._trust[axis] / math.sqrt(high - low)))
            elif below is not None or above is not None:
                beside.append((self._ratio(below or above or index), self._trust[axis]))
        if between:
            return _weighted_median(between), True
        return (_weighted_median(beside), False) if beside else self._nearest(index)

    def _neighbours(self, index: Index, axis: int) -> tuple[Index | None, Index | None]:
        along: tuple[Any, ...] = (*index[:axis], slice(None), *index[axis + 1 :])
        line = self._seconds[along]
        known = np.flatnonzero(~np.isnan(line))
        place = int(np.searchsorted(known, index[axis]))

        def moved(position: int) -> Index:
            return (*index[:axis], int(known[position]), *index[axis + 1 :])

        below = moved(place - 1) if place > 0 else None
        above = moved(place) if place < len(known) else None
        return below, above

    def _nearest(self, index: Index) -> tuple[float, bool]:
        """No measurement on any line through the point: take the nearest one there is."""
        known = np.argwhere(~np.isnan(self._seconds))
        distance = np.zeros(len(known))
        for axis, logs in enumerate(self._logs):
            distance += (np.array(logs)[known[:, axis]] - logs[index[axis]]) ** 2
        return self._ratio(tuple(int(i) for i in known[int(distance.argmin())])), False


def _bracket(
    axis: list[float], logs: list[float], value: float
) -> tuple[list[tuple[int, float]], bool]:
    """The indices around a value with their shares, and whether it lies within the axis."""
    if value <= axis[0]:
        return [(0, 1.0)], value == axis[0]
    if value >= axis[-1]:
        return [(len(axis) - 1, 1.0)], value == axis[-1]
    above = bisect_right(axis, value)
    if axis[above - 1] == value:
        return [(above - 1, 1.0)], True
    share = (math.log(value) - logs[above - 1]) / (logs[above] - logs[above - 1])
    return [(above - 1, 1 - share), (above, share)], True


def _weighted_median(weighted: list[tuple[float, float]]) -> float:
    """The median of (value, weight), linear between the middles of the weights.

    Of two values it is their weighted mean; of three, a lone outlier hardly moves it.
    """
    ordered = sorted(weighted)
    half = sum(weight for _, weight in ordered) / 2
    passed, before = 0.0, ordered[0]
    before_middle = -math.inf
    for value, weight in ordered:
        middle = passed + weight / 2
        if middle >= half:
            if before_middle == -math.inf:
                return value
            share = (half - before_middle) / (middle - before_middle)
            return before[0] + (value - before[0]) * share
        passed, before, before_middle = passed + weight, (value, weight), middle
    return before[0]
