"""Gaps between tokens, kept compactly."""

from array import array

import numpy as np

from twin.engine.result import Floats


class GapLog:
    """Gaps between tokens as (gap, how often in a row): a step gives its whole batch one gap."""

    __slots__ = ("_counts", "_runs", "_values")

    def __init__(self) -> None:
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

    def gaps(self) -> Floats:
        """Return all of them, one after another."""
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
