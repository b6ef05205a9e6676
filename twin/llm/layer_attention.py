"""Attention of a layer profile: one layer's time by chunk, its history, decodes and theirs.

The measured grid spans four axes: prefill chunk × KV before the chunk × decoding sequences × KV
each of them attends to. What is interpolated is not the time but its ratio to a roofline of the
same work, linearly in the logarithm of each axis: the roofline carries the curvature (products
of axes, the square of a chunk), the ratio is smooth. Outside the grid the ratio stays that of
the nearest edge and the roofline goes on.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Number = TypeVar("Number", float, Floats)
Point = tuple[int, int, int, int]
"""(prefill chunk, KV before it, decoding sequences, KV of each), tokens and counts."""

# The roofline only has to bend as the kernels do: the measured ratio corrects its height.
_HBM_SHARE, _TENSOR_SHARE = 0.8, 0.6
_FLOOR_S = 5e-6


@dataclass(frozen=True, slots=True)
class AttentionRoofline:
    """Least time of one layer's attention on one rank.

    Attributes:
        kv_bytes_per_token: K and V of one token in one layer on this rank.
        flops_per_pair: multiply-adds (times two) of one query token and one KV token.
        hbm_bytes_per_s, flops_per_s: datasheet rates of the GPU.
    """

    kv_bytes_per_token: float
    flops_per_pair: float
    hbm_bytes_per_s: float
    flops_per_s: float

    def seconds(self, chunk: float, history: float, seqs: float, kv: Number) -> Number:
        """Return the time for a chunk after `history` tokens beside `seqs` decodes over `kv`."""
        pairs = chunk * (history + 0.5 * chunk) + seqs * kv
        moved = (chunk + history + seqs * kv) * self.kv_bytes_per_token
        compute_s = pairs * self.flops_per_pair / (_TENSOR_SHARE * self.flops_per_s)
        return _FLOOR_S + compute_s + moved / (_HBM_SHARE * self.hbm_bytes_per_s)


class AttentionGrid:
    """Seconds of one layer's attention, from measured points.

    Args:
        points: shape (n, 4), columns as in `Point`; decode-only points have chunk 0, prefill-only
            points 0 decodes.
        seconds: shape (n,).
        roofline: of the same network, rank and GPU.

    Each prefill chunk may have been measured on axes of its own; holes are filled from their
    neighbours along one axis at a time.
    """

    def __init__(
        self, points: NDArray[np.int64], seconds: Floats, roofline: AttentionRoofline
    ) -> None:
        self._roofline = roofline
        self._decode = self._slice(points, seconds, 0, decodes=True)
        chunks = [int(c) for c in np.unique(points[:, 0]) if c > 0]
        self._mixed = _Chunks({c: self._slice(points, seconds, c, decodes=True) for c in chunks})
        self._prefill = _Chunks({c: self._slice(points, seconds, c, decodes=False) for c in chunks})

    def seconds(self, chunk: float, history: float, seqs: float, kv: float) -> float:
        """Return one layer's attention; 0 for no work."""
        if chunk <= 0 and seqs <= 0:
            return 0.0
        if chunk <= 0:
            ratio = self._decode.log_ratio(0.0, seqs, kv)
        elif seqs <= 0:
            ratio = self._prefill.log_ratio(chunk, history, 1.0, 1.0)
        else:
            ratio = self._mixed.log_ratio(chunk, history, seqs, kv)
        return self._roofline.seconds(max(chunk, 0.0), history, max(seqs, 0.0), kv) * math.exp(
            ratio
        )

    def decode_seconds(self, seqs: int, kv: Floats) -> Floats:
        """Return `seconds` of decodes alone by KV of each, shape (n,) as `kv`."""
        ratios = self._decode.log_ratios(0.0, seqs, kv)
        # NumPy's exp may differ from the library's in the last bit.
        factors = np.array([math.exp(ratio) for ratio in ratios.tolist()])
        seconds: Floats = self._roofline.seconds(0.0, 0.0, seqs, kv) * factors
        return seconds

    def _slice(
        self, points: NDArray[np.int64], seconds: Floats, chunk: int, *, decodes: bool
    ) -> "_Slice":
        keep = (points[:, 0] == chunk) & ((points[:, 2] > 0) == decodes)
        rows = points[keep]
        ratios = [
            math.log(value / self._roofline.seconds(*(float(v) for v in row)))
            for row, value in zip(rows.tolist(), seconds[keep].tolist(), strict=True)
        ]
        return _Slice(rows[:, 1:], np.array(ratios))


class _Slice:
    """Log ratios of one prefill chunk over (KV before it, decodes, KV of each)."""

    __slots__ = ("_axes", "_values")

    def __init__(self, rows: NDArray[np.int64], ratios: Floats) -> None:
        axes = [np.unique(rows[:, column]) for column in range(3)]
        grid = np.full([axis.size for axis in axes], np.nan)
        index = tuple(np.searchsorted(axis, rows[:, i]) for i, axis in enumerate(axes))
        grid[index] = ratios
        logs = [_log(axis) for axis in axes]
        self._axes = [axis.tolist() for axis in logs]
        self._values: list[list[list[float]]] = fill(grid, logs).tolist()

    def log_ratio(self, history: float, seqs: float, kv: float) -> float:
        """Return the trilinear value in logarithms, frozen outside the axes."""
        (i, u), (j, v), (k, w) = (
            _place(axis, value) for axis, value in zip(self._axes, (history, seqs, kv), strict=True)
        )
        values = self._values
        total = 0.0
        for a, share_a in ((i, 1 - u), (i + 1, u)):
            if not share_a:
                continue
            for b, share_b in ((j, 1 - v), (j + 1, v)):
                if not share_b:
                    continue
                row = values[a][b]
                along = row[k] * (1 - w) + (row[k + 1] * w if w else 0.0)
                total += share_a * share_b * along
        return total

    def log_ratios(self, history: float, seqs: float, kv: Floats) -> Floats:
        """Return `log_ratio` by KV of each decode, shape (n,) as `kv`."""
        axis = self._axes[2]
        (i, u), (j, v) = _place(self._axes[0], history), _place(self._axes[1], seqs)
        x = np.array([math.log2(value) for value in (kv + 1.0).tolist()])
        last = len(axis) - 1
        low = np.clip(np.searchsorted(axis, x, side="right") - 1, 0, last)
        high, knots = np.minimum(low + 1, last), np.array(axis)
        between = (x > axis[0]) & (x < axis[last])
        width = np.where(between, knots[high] - knots[low], 1.0)
        w = np.where(between, (x - knots[low]) / width, 0.0)
        total: Floats = np.zeros(x.size)
        for a, share_a in ((i, 1 - u), (i + 1, u)):
            for b, share_b in ((j, 1 - v), (j + 1, v)):
                if share_a and share_b:
                    row = np.array(self._values[a][b])
                    total += share_a * share_b * (row[low] * (1 - w) + row[high] * w)
        return total


class _Chunks:
    """Slices by prefill chunk."""

    __slots__ = ("_axis", "_slices")

    def __init__(self, slices: Mapping[int, _Slice]) -> None:
        self._axis = _log(np.array(sorted(slices), dtype=np.int64)).tolist()
        self._slices = [slices[chunk] for chunk in sorted(slices)]

    def log_ratio(self, chunk: float, history: float, seqs: float, kv: float) -> float:
        """Return the value between the two nearest measured chunks."""
        index, share = _place(self._axis, chunk)
        low = self._slices[index].log_ratio(history, seqs, kv)
        if not share:
            return low
        high = self._slices[index + 1].log_ratio(history, seqs, kv)
        return low * (1 - share) + high * share


def fill(grid: Floats, axes: Iterable[Floats]) -> Floats:
    """Return `grid` without NaN: linear between known neighbours, constant beyond the last.

    Holes inside are filled along each axis in turn, last axis first, then edges outward.
    """
    filled, coordinates = grid.copy(), list(axes)
    for inside in (True, False):
        for axis in reversed(range(filled.ndim)):
            moved = np.moveaxis(filled, axis, -1)
            for line in np.ndindex(moved.shape[:-1]):
                known = ~np.isnan(moved[line])
                if known.all() or not known.any():
                    continue
                x, out = coordinates[axis], (np.nan if inside else None)
                moved[line] = np.where(
                    known,
                    moved[line],
                    np.interp(x, x[known], moved[line][known], left=out, right=out),
                )
    return filled


def _log(axis: NDArray[np.int64]) -> Floats:
    return np.log2(axis.astype(np.float64) + 1.0)


def _place(axis: list[float], value: float) -> tuple[int, float]:
    """Return the knot at or below log2(value + 1) and the share of the way to the next."""
    x = math.log2(value + 1.0)
    last = len(axis) - 1
    if x <= axis[0]:
        return 0, 0.0
    if x >= axis[last]:
        return last, 0.0
    index = bisect_right(axis, x) - 1
    return index, (x - axis[index]) / (axis[index + 1] - axis[index])
