"""Plateaus and steps of a curve: where latency jumps as the footprint outgrows a cache or TLB."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_STEP = 0.03
"""Two plateaus nearer than this are one."""
_FLOOR = 0.005
"""Noise is taken to be at least this, so that smooth curves aren't cut by the digits."""
_NORMAL = 0.6745 * math.sqrt(2)
"""Median absolute difference of two draws, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Plateau:
    """A stretch of a curve that is flat: from the first to the last x, at a level."""

    first: float
    last: float
    level: float
    points: int


def plateaus(
    x: Sequence[float], y: Sequence[float], *, least_step: float = LEAST_STEP
) -> list[Plateau]:
    """Return the plateaus of a curve, in order of x.

    Piecewise constant in log y, by dynamic programming: the squared distances, and for every
    plateau a penalty that grows with the noise. Single points between two plateaus, as where a
    cache is half outgrown, may stand alone.

    Args:
        x: positive, in any order; of equal ones y's median counts.
        y: positive.
        least_step: neighbours whose levels differ by less are joined.
    """
    if not len(x):
        return []
    at, logs = _medians(x, y)
    count = len(at)
    noise = max(_FLOOR, float(np.median(np.abs(np.diff(logs)))) / _NORMAL if count > 2 else _FLOOR)
    penalty = 2 * noise**2 * max(1.0, math.log(count)) + (least_step / 2) ** 2
    ends = _cuts(logs, penalty)
    return _joined(at, logs, ends, least_step)


def _medians(
    x: Sequence[float], y: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    every, logs = np.asarray(x, dtype=np.float64), np.log(np.asarray(y, dtype=np.float64))
    unique = np.unique(every)
    return unique, np.array([float(np.median(logs[every == value])) for value in unique])


def _cuts(logs: NDArray[np.float64], penalty: float) -> list[int]:
    """Ends (exclusive) of the stretches of the best cut."""
    count = len(logs)
    total, square = np.cumsum(np.r_[0.0, logs]), np.cumsum(np.r_[0.0, logs**2])

    def cost(start: int, end: int) -> float:
        spread = square[end] - square[start] - (total[end] - total[start]) ** 2 / (end - start)
        return max(float(spread), 0.0)

    best, origin = [0.0] + [math.inf] * count, [0] * (count + 1)
    for end in range(1, count + 1):
        for start in range(end):
            candidate = best[start] + cost(start, end) + penalty
            if candidate < best[end]:
                best[end], origin[end] = candidate, start
    ends, end = [], count
    while end:
        ends.append(end)
        end = origin[end]
    return ends[::-1]


def _joined(
    at: NDArray[np.float64], logs: NDArray[np.float64], ends: list[int], least_step: float
) -> list[Plateau]:
    found: list[tuple[int, int]] = []
    start = 0
    for end in ends:
        if found:
            low, high = found[-1]
            apart = float(np.median(logs[start:end]) - np.median(logs[low:high]))
            if abs(apart) < math.log1p(least_step):
                found[-1] = (low, end)
                start = end
                continue
        found.append((start, end))
        start = end
    return [
        Plateau(
            float(at[low]),
            float(at[high - 1]),
            float(np.exp(np.median(logs[low:high]))),
            high - low,
        )
        for low, high in found
    ]
