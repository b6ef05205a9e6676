"""Which rows to take, and which are wrong."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrate.sources.tabulate import Columns

# A row this far off both its neighbours along the length is a measuring error.
_SPIKE = 2.0


def drop_spikes(columns: Columns, along: str) -> tuple[Columns, int]:
    """Drop rows less than half, or more than double, of both neighbours along a column.

    The rows must be sorted with `along` as their last key.

    Returns:
        The rows kept, and how many were dropped.
    """
    others = [name for name in columns if name not in (along, "seconds")]
    keys = np.stack([columns[name].astype(np.int64) for name in others], axis=1)
    same = np.all(keys[1:] == keys[:-1], axis=1)
    inner = np.zeros(len(keys), dtype=bool)
    inner[1:-1] = same[:-1] & same[1:]
    seconds = columns["seconds"].astype(np.float64)
    before, after = np.roll(seconds, 1), np.roll(seconds, -1)
    low = seconds * _SPIKE < np.minimum(before, after)
    high = seconds > _SPIKE * np.maximum(before, after)
    kept = ~(inner & (low | high))
    return {name: column[kept] for name, column in columns.items()}, int((~kept).sum())


def above_peak(
    columns: Columns, num_bytes: NDArray[np.float64], bytes_per_s: float
) -> NDArray[np.bool_]:
    """Return which rows moved their bytes faster than memory can: they ran from the L2."""
    moved: NDArray[np.bool_] = num_bytes / columns["seconds"] > bytes_per_s
    return moved


def mask_of(rows: Mapping[str, NDArray[np.generic]], **wanted: object) -> NDArray[np.bool_]:
    """Return where every named column that exists equals the wanted value or one of several."""
    length = len(next(iter(rows.values())))
    mask = np.ones(length, dtype=bool)
    for name, value in wanted.items():
        if name in rows:
            values = (
                value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            )
            mask &= np.isin(rows[name], np.array(values))
    return mask
