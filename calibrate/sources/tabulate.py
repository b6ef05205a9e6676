"""From rows to a table of a profile: duplicates, order, precision."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# 12 bits of mantissa: 0.012 % at most, a fiftieth of what a repeated measurement differs by.
_DROPPED_BITS = 11

Columns = dict[str, NDArray[Any]]


def tabulate(shape: Mapping[str, NDArray[Any]], seconds: NDArray[Any]) -> tuple[Columns, int]:
    """Return sorted columns with `seconds`, and how many rows repeated an earlier key.

    Repeated keys give their median: they are runs of the same kernel.
    """
    keys = np.stack([np.asarray(column, dtype=np.int64) for column in shape.values()], axis=1)
    unique, position = np.unique(keys, axis=0, return_inverse=True)
    position = position.reshape(-1)
    measured = seconds.astype(np.float64)
    order = np.lexsort((measured, position))
    starts = np.searchsorted(position[order], np.arange(len(unique)))
    counts = np.diff([*starts, len(order)])
    ranked = measured[order]
    median = (ranked[starts + (counts - 1) // 2] + ranked[starts + counts // 2]) / 2
    columns: Columns = {name: _narrow(unique[:, index]) for index, name in enumerate(shape)}
    columns["seconds"] = _round(median)
    return columns, len(keys) - len(unique)


def _narrow(values: NDArray[np.int64]) -> NDArray[Any]:
    for dtype in (np.uint16, np.uint32):
        if values.max(initial=0) <= np.iinfo(dtype).max:
            return values.astype(dtype)
    return values


def _round(seconds: NDArray[np.float64]) -> NDArray[np.float32]:
    bits = seconds.astype(np.float32).view(np.uint32)
    half = np.uint32(1 << (_DROPPED_BITS - 1))
    keep = np.uint32(0xFFFFFFFF << _DROPPED_BITS & 0xFFFFFFFF)
    return ((bits + half) & keep).view(np.float32)
