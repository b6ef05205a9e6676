"""How many pages, lines or sectors a regular set of byte ranges touches: exact counts.

One form serves every grain: ranges of `segment` bytes that begin `stride` bytes apart.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Segments:
    """`count` byte ranges, the i-th at `start + i * stride`, each `segment` bytes long.

    Ranges may not overlap: `segment` is at most `stride`.
    """

    count: int
    stride: int
    segment: int
    start: int = 0

    def __post_init__(self) -> None:
        if self.count < 0 or self.start < 0 or not 0 < self.segment <= self.stride:
            raise ValueError(f"{self} needs count, start >= 0 and 0 < segment <= stride")

    @property
    def span_bytes(self) -> int:
        """From the first byte of the first range to the last of the last."""
        return (self.count - 1) * self.stride + self.segment if self.count else 0


def floor_sum(count: int, divisor: int, step: int, start: int) -> int:
    """Return the sum of `(step * i + start) // divisor` over i in [0, count), exactly.

    Euclid's descent, O(log) steps; all arguments are whole and not negative.
    """
    total = 0
    while count > 0:
        total += (count - 1) * count // 2 * (step // divisor) + count * (start // divisor)
        step, start = step % divisor, start % divisor
        highest = step * count + start
        if highest < divisor:
            break
        count, start = highest // divisor, highest % divisor
        divisor, step = step, divisor
    return total


def touched(ranges: Segments, unit_bytes: int) -> int:
    """Return how many aligned units of `unit_bytes` the ranges touch, each counted once."""
    if not ranges.count:
        return 0
    gap = ranges.stride - ranges.segment
    if gap < unit_bytes:  # too narrow to pass over a whole unit: all of the span is touched
        last = ranges.start + ranges.span_bytes - 1
        return last // unit_bytes - ranges.start // unit_bytes + 1
    # Ranges so far apart that two of them share no unit.
    ends = floor_sum(ranges.count, unit_bytes, ranges.stride, ranges.start + ranges.segment - 1)
    starts = floor_sum(ranges.count, unit_bytes, ranges.stride, ranges.start)
    return ends - starts + ranges.count


def expected_touched(ranges: Segments, chosen: float, unit_bytes: int) -> float:
    """Return how many units `chosen` of the ranges touch, if drawn at random without repeats.

    The mean over all draws: a unit that k of the ranges reach into stays untouched with the
    hypergeometric probability C(count - k, chosen) / C(count, chosen). `chosen` may be a
    fraction where it is itself a mean.
    """
    if chosen <= 0 or not ranges.count:
        return 0.0
    chosen = min(chosen, float(ranges.count))
    total = 0.0
    for k, units in _reaching_counts(ranges, unit_bytes):
        total += units * (1.0 - _none_of(k, chosen, ranges.count))
    return total


# A run asks for the same pool again and again, with other numbers of blocks.
@lru_cache(maxsize=64)
def _reaching_counts(ranges: Segments, unit_bytes: int) -> tuple[tuple[int, int], ...]:
    """Return (ranges that reach into a unit, how many such units there are)."""
    reaching, units = np.unique(_reaching(ranges, unit_bytes), return_counts=True)
    return tuple(zip(reaching.tolist(), units.tolist(), strict=True))


def _reaching(ranges: Segments, unit_bytes: int) -> Ints:
    """By unit of the span: how many ranges reach into it."""
    first = ranges.start // unit_bytes
    last = (ranges.start + ranges.span_bytes - 1) // unit_bytes
    low = np.arange(first, last + 1, dtype=np.int64) * unit_bytes - ranges.start
    earliest = -((ranges.segment - 1 - low) // ranges.stride)  # ceil((low - segment + 1) / stride)
    latest = (low + unit_bytes - 1) // ranges.stride
    reaching: Ints = np.minimum(latest, ranges.count - 1) - np.maximum(earliest, 0) + 1
    return np.maximum(reaching, 0)


def _none_of(k: int, chosen: float, count: int) -> float:
    """Return the chance that none of k given ranges is among the chosen."""
    left = count - chosen
    if k > left:
        return 0.0
    if not k:
        return 1.0
    taken = np.arange(k, dtype=np.float64)
    return math.exp(float(np.log1p(-chosen / (count - taken)).sum())) if left > k - 1 else 0.0
