"""Gaps between the tokens of requests, in order of delivery at one engine core."""

from array import array
from collections.abc import Callable

import numpy as np

from twin.engine.result import Floats


class GapLog:
    """Gaps between tokens as (gap, how often in a row): a step gives its whole batch one gap."""

    __slots__ = ("_counts", "_noted", "_runs", "_values")

    def __init__(self) -> None:
        self._noted: Callable[[], Floats] | None = None
        self._values, self._counts = array("d"), array("q")
        self._runs: list[tuple[int, Floats, int]] = []

    def add(self, gap_s: float) -> None:
        """Add one gap."""
        if self._values and self._values[-1] == gap_s and self._may_grow():
            self._counts[-1] += 1
        else:
            self.add_many(gap_s, 1)

    def add_many(self, gap_s: float, times: int) -> None:
        """Add one gap so many times."""
        self._values.append(gap_s)
        self._counts.append(times)

    def add_run(self, at_s: Floats, times: int) -> None:
        """Add the gaps between these instants, each so many times."""
        self._runs.append((len(self._values), at_s, times))

    def take_from(self, noted: Callable[[], Floats]) -> None:
        """Return, when asked, what somebody else has noted: all there are."""
        self._noted = noted

    def gaps(self) -> Floats:
        """Return all of them, one after another."""
        if self._noted is not None:
            return self._noted()
        values = np.array(self._values, dtype=np.float64)
        counts = np.array(self._counts, dtype=np.int64)
        parts, done = [], 0
        for place, at_s, times in self._runs:
            parts.append(np.repeat(values[done:place], counts[done:place]))
            parts.append(np.repeat(np.diff(at_s), times))
            done = place
        parts.append(np.repeat(values[done:], counts[done:]))
        return np.concatenate(parts)

    def _may_grow(self) -> bool:
        """Whether nothing came after the last single gap."""
        return not self._runs or self._runs[-1][0] < len(self._values)


class SampledGapLog(GapLog):
    """Keeps every so manieth gap.

    Args:
        stride: one is kept of so many, the first among them; 0: none.
    """

    __slots__ = ("_left", "_stride")

    def __init__(self, stride: int) -> None:
        super().__init__()
        self._stride = stride
        self._left = 0  # gaps to pass over before the next that is kept

    def add(self, gap_s: float) -> None:
        """See `GapLog.add`."""
        self.add_many(gap_s, 1)

    def add_many(self, gap_s: float, times: int) -> None:
        """See `GapLog.add_many`."""
        if not self._stride:
            return
        kept = max(0, -(-(times - self._left) // self._stride))
        if kept:
            super().add_many(gap_s, kept)
        self._left += kept * self._stride - times

    def add_run(self, at_s: Floats, times: int) -> None:
        """See `GapLog.add_run`."""
        if not self._stride:
            return
        total = (len(at_s) - 1) * times
        kept = np.arange(self._left, total, self._stride)
        steps = kept // times
        for gap_s in (at_s[steps + 1] - at_s[steps]).tolist():
            super().add_many(gap_s, 1)
        self._left += kept.size * self._stride - total


def gap_log(stride: int) -> GapLog:
    """Return a log that keeps one gap of so many."""
    return GapLog() if stride == 1 else SampledGapLog(stride)
