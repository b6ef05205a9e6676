"""Relative gains from paired runs, with 95 % confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twin.search.objectives import Direction

# Student's t, 97.5th percentile, by degrees of freedom from 1 on.
_T975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip
_Z975 = 1.959964


@dataclass(frozen=True, slots=True)
class PairedGain:
    """By how much B is better than A, relative to A's mean.

    Attributes:
        a, b: means over the pairs, in the objective's own unit.
        relative: above 0: B is better; None where A's mean is 0.
        low, high: 95 % interval of it; None with fewer than two pairs.
        pairs: how many.
    """

    a: float
    b: float
    relative: float | None
    low: float | None
    high: float | None
    pairs: int


def paired_gain(a: Sequence[float], b: Sequence[float], direction: Direction) -> PairedGain:
    """Return B's gain over A from runs that pairwise met the same requests.

    Args:
        a, b: values of an objective, shape (pairs,) each, at least one.
        direction: which way it is better.

    The estimate is the ratio of means; its interval is Student's t over the linearised
    differences b - r a (Cochran, Sampling Techniques, 6.4), which a pair whose `a` is 0 does not
    spoil as it would a mean of ratios.
    """
    if len(a) != len(b) or not len(a):
        raise ValueError("pairs are needed")
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    pairs, mean_a, mean_b = left.size, float(left.mean()), float(right.mean())
    if mean_a == 0:
        return PairedGain(mean_a, mean_b, None, None, None, pairs)
    ratio = mean_b / mean_a
    sign = 1.0 if direction == "maximize" else -1.0
    relative = sign * (ratio - 1)
    if pairs < 2:
        return PairedGain(mean_a, mean_b, relative, None, None, pairs)
    spread = float(np.std(right - ratio * left, ddof=1))
    half = t975(pairs - 1) * spread / math.sqrt(pairs) / abs(mean_a)
    return PairedGain(mean_a, mean_b, relative, relative - half, relative + half, pairs)


def t975(freedom: int) -> float:
    """Return the 97.5th percentile of Student's t for some degrees of freedom, at least 1."""
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom")
    if freedom <= len(_T975):
        return _T975[freedom - 1]
    z = _Z975
    # Cornish-Fisher: within 0.0002 from 20 degrees of freedom on.
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
