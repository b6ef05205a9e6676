"""One-dimensional and expert tables of a layer profile, as look-ups in seconds."""

from bisect import bisect_right
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


class Line:
    """Seconds by a count, linear between measured counts.

    Below the first it stays; above the last it goes on in proportion, as work does.
    """

    __slots__ = ("_x", "_y")

    def __init__(self, counts: NDArray[np.int64], seconds: NDArray[np.float64]) -> None:
        order = np.argsort(counts, kind="stable")
        self._x: list[int] = counts[order].tolist()
        self._y: list[float] = seconds[order].tolist()

    def __call__(self, count: float) -> float:
        """Return the seconds at `count`."""
        x, y = self._x, self._y
        if count <= x[0]:
            return y[0]
        if count >= x[-1]:
            return y[-1] * count / x[-1]
        index = bisect_right(x, count)
        share = (count - x[index - 1]) / (x[index] - x[index - 1])
        return y[index - 1] + share * (y[index] - y[index - 1])


def lines(
    layers: NDArray[np.str_], counts: NDArray[np.int64], seconds: NDArray[np.float64]
) -> Mapping[str, Line]:
    """Return a line for each name in `layers`."""
    return {
        str(name): Line(counts[layers == name], seconds[layers == name])
        for name in np.unique(layers)
    }


class ExpertTable:
    """Seconds of one MoE layer by tokens and activated experts, linear in both.

    Args:
        tokens, experts, seconds: measured rows, shape (n,) each.
        use: rows to use. Token counts that keep fewer than two of them borrow the slope and, as
            far as they must, the level of the nearest count that has two.
    """

    __slots__ = ("_lines", "_tokens")

    def __init__(
        self,
        tokens: NDArray[np.int64],
        experts: NDArray[np.int64],
        seconds: NDArray[np.float64],
        use: NDArray[np.bool_],
    ) -> None:
        tokens, experts, seconds = tokens[use], experts[use], seconds[use]
        counts = np.unique(tokens)
        enough = [int(n) for n in counts if (tokens == n).sum() > 1] or [int(counts[0])]
        self._tokens = enough
        self._lines = [_Slope(experts[tokens == n], seconds[tokens == n]) for n in enough]

    def __call__(self, tokens: float, experts: float) -> float:
        """Return the seconds for `tokens` that wake `experts` experts of this rank."""
        known = self._tokens
        if tokens <= known[0]:
            return self._lines[0](experts)
        if tokens >= known[-1]:
            # Beyond the table the products are bound by arithmetic: in proportion to tokens.
            return self._lines[-1](experts) * tokens / known[-1]
        index = bisect_right(known, tokens)
        low, high = known[index - 1], known[index]
        share = (tokens - low) / (high - low)
        below = self._lines[index - 1](experts)
        return below + share * (self._lines[index](experts) - below)


class _Slope:
    """Seconds by activated experts: each wakes its weights, so a line goes on past both ends."""

    __slots__ = ("_x", "_y")

    def __init__(self, experts: NDArray[np.int64], seconds: NDArray[np.float64]) -> None:
        order = np.argsort(experts, kind="stable")
        self._x: list[int] = experts[order].tolist()
        self._y: list[float] = seconds[order].tolist()

    def __call__(self, experts: float) -> float:
        x, y = self._x, self._y
        if len(x) == 1:
            return y[0]
        index = min(max(bisect_right(x, experts), 1), len(x) - 1)
        slope = (y[index] - y[index - 1]) / (x[index] - x[index - 1])
        return max(0.0, y[index - 1] + slope * (experts - x[index - 1]))
