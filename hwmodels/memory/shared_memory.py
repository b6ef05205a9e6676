"""Shared memory: bank conflicts of a warp, and tiles against its size."""

import math

import numpy as np
from numpy.typing import NDArray

from hwmodels.memory.units import WARP_LANES

BANKS = 32
"""Of 4 bytes each."""


def conflict_degree(stride_words: int) -> int:
    """Return in how many turns a warp reads a column, its lanes `stride_words` apart.

    1: no conflict; 32 for strides that are multiples of 32 words; stride 0 is a broadcast.
    """
    return math.gcd(stride_words, BANKS) if stride_words else 1


def counted_degree(words: NDArray[np.int64]) -> int:
    """Return in how many turns a warp reads these words, by counting: the busiest bank's.

    Lanes that read the same word share a turn.
    """
    distinct = np.unique(words)
    return int(np.bincount(distinct % BANKS, minlength=BANKS).max()) if distinct.size else 0


def conflicts_per_cycle_limit(num_sms: int) -> int:
    """Return the most bank conflicts a GPU can have in a cycle: every lane of one warp an SM."""
    return WARP_LANES * num_sms


def tile_bytes(stages: int, shape: tuple[int, int, int], element_bytes: float) -> float:
    """Return the shared memory of a GEMM's tiles: stages × (BM + BN) × BK × element.

    Args:
        stages: tiles in flight.
        shape: (BM, BN, BK) elements.
        element_bytes: of one operand.
    """
    rows, columns, depth = shape
    return stages * (rows + columns) * depth * element_bytes


def fits_block(num_bytes: float, limit_bytes: int | None) -> bool | None:
    """Whether one thread block can have so much; None: the limit is unknown."""
    return None if limit_bytes is None else num_bytes <= limit_bytes


def blocks_per_sm(num_bytes: float, block_limit: int | None, sm_limit: int | None) -> int | None:
    """Return how many thread blocks of so much shared memory an SM holds; None: unknown."""
    if block_limit is None or sm_limit is None:
        return None
    if num_bytes > block_limit:
        return 0
    return int(sm_limit // num_bytes) if num_bytes else None
