"""Interpolation of short tables of (x, y), frozen at both ends."""

import math
from bisect import bisect_right
from collections.abc import Sequence


def log_interpolate(x: float, points: Sequence[tuple[float, float]]) -> float:
    """Return y at x, linear in log(x) between the points; the edge values hold outside."""
    if x <= points[0][0]:
        return points[0][1]
    if x >= points[-1][0]:
        return points[-1][1]
    index = bisect_right(points, x, key=lambda point: point[0])
    (x0, y0), (x1, y1) = points[index - 1], points[index]
    return y0 + (y1 - y0) * math.log(x / x0) / math.log(x1 / x0)
