"""Fitting collectives: the minimum of three lines over the message size."""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hwmodels.measured.tables import variants
from hwmodels.profile import HardwareProfile, Table


def all_lines(profile: HardwareProfile) -> dict[str, list[list[float]]]:
    """Return the lines of every NCCL curve, by `kind/ranks`."""
    lines = {}
    for kind in variants(profile.tables, "nccl"):
        table = profile.tables[f"nccl.{kind}"]
        for ranks in np.unique(table["ranks"]).tolist():
            lines[f"{kind}/{ranks}"] = fit_lines(table, ranks)
    return lines


def fit_lines(table: Table, ranks: int) -> list[list[float]]:
    """Return three lines (microseconds, GB/s) whose minimum fits a collective's table.

    Robust: a few published rows are slower at a smaller message than at a larger one.
    """
    from scipy.optimize import least_squares

    mine = table["ranks"] == ranks
    sizes = table["bytes"][mine].astype(np.float64)
    micros = table["seconds"][mine].astype(np.float64) * 1e6
    order = np.argsort(sizes)
    sizes, micros = sizes[order], micros[order]

    def times(logs: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
        lines = np.exp(logs.reshape(3, 2))
        each = lines[:, :1] + at[None, :] / (lines[:, 1:] * 1e3)
        lowest: NDArray[np.float64] = each.min(axis=0)
        return lowest

    best = None
    for first_knee, second_knee in ((0.2, 0.6), (0.3, 0.7), (0.4, 0.8), (0.15, 0.5)):
        start = _starting_lines(sizes, micros, (first_knee, second_knee))
        found = least_squares(
            lambda logs: np.log(times(logs, sizes) / micros),
            start,
            loss="soft_l1",
            f_scale=0.05,
            max_nfev=250,
        )
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None  # noqa: S101  four starts were tried
    lines = np.exp(best.x.reshape(3, 2)).tolist()
    return [[float(f"{a:.4g}"), float(f"{b:.4g}")] for a, b in sorted(lines)]


def _starting_lines(
    sizes: NDArray[np.float64], micros: NDArray[np.float64], knees: tuple[float, float]
) -> NDArray[np.float64]:
    """Lines through the parts of the curve that two knees divide it into."""
    count, lines = len(sizes), []
    edges = [0, round(knees[0] * count), round(knees[1] * count), count]
    for start, end in pairwise(edges):
        part = slice(max(0, min(start, count - 2)), max(end, start + 2))
        x, y = sizes[part], micros[part]
        slope = max((y[-1] - y[0]) / (x[-1] - x[0]), 1e-9)
        base = max(y[0] - slope * x[0], 1.0)
        lines.append((math.log(base), math.log(1 / slope / 1e3)))
    return np.array(lines).reshape(-1)
