"""`LayerRun`: a run of decode steps over measured layers, in arrays."""

import numpy as np
from numpy.typing import NDArray

from twin.llm.op_sum import BOUNDS, SOURCES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class LayerRun:
    """Consecutive decode-only steps of one batch; implements `twin.llm.decode_run.DecodeTimes`.

    It is put together as one step's `LayerSum` is, in the same order, so that every step's sum is
    the same to the last bit.

    Args:
        steps: how many.

    Attributes:
        seconds: of each step, shape (steps,); complete after `close`.
    """

    __slots__ = ("_bounds", "_by_bound", "_by_source", "seconds")

    def __init__(self, steps: int) -> None:
        self._by_bound: list[Floats] = [np.zeros(steps) for _ in BOUNDS]
        self._by_source: list[Floats] = [np.zeros(steps) for _ in SOURCES]
        self.seconds: Floats = np.zeros(steps)
        self._bounds: Ints = np.zeros(steps, dtype=np.int64)

    def put(self, seconds: float | Floats, bound: int, source: int) -> None:
        """Add seconds: the same to each step, or shape (steps,)."""
        self._by_bound[bound] += seconds
        self._by_source[source] += seconds

    def close(self) -> "LayerRun":
        """Take the sums; return the run itself."""
        # Python's own sum, whose rounding depends on its version, as `LayerSum.step_time` takes it.
        columns = zip(*(column.tolist() for column in self._by_bound), strict=True)
        self.seconds = np.array([sum(column) for column in columns], dtype=np.float64)
        self._bounds = np.argmax(np.stack(self._by_bound), axis=0).astype(np.int64)
        return self

    def bound(self, steps: int) -> int | Ints:
        """See `DecodeTimes.bound`."""
        found = self._bounds[:steps]
        return int(found[0]) if (found == found[0]).all() else found

    def by_source(self, steps: int) -> list[float]:
        """See `DecodeTimes.by_source`."""
        return [float(column[:steps].sum()) for column in self._by_source]
