"""From a measured disk to a storage tier: t = alpha + fragments * c + bytes / bandwidth."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hwmodels.storage_tier import (
    DirectIoFacts,
    StorageTier,
    TierHeldOut,
    TierLine,
    TierProvenance,
    TierRow,
)

if TYPE_CHECKING:
    from kernels.probes.direct_io import DirectIo
    from kernels.probes.storage import StorageReport

SPLIT = "each block size but the smallest and the largest left out in turn"
_LEAST_ROWS = 4
"""One more than there are parameters."""
_SOFT_L1_SCALE = 0.1
_LEAST_S, _MOST_S = 1e-9, 60.0
_LEAST_RATE, _MOST_RATE = 1e3, 1e13
_NEGLIGIBLE_S = 1e-8
_STARTS = (0.5, 0.02, 0.98)
"""Shares of a small block's time that a fragment starts with."""

Matrix = NDArray[np.float64]
Group = tuple[str, str, int]


def fit_tier(name: str, report: "StorageReport", provenance: TierProvenance) -> StorageTier:
    """Return the tier of a measured disk, with its error on block sizes left out.

    Raises:
        ValueError: no direction and mode has rows enough for a fit.
    """
    rows = tuple(
        TierRow(
            direction=row.point.direction,
            io_mode=row.point.io_mode,
            queue_depth=row.point.queue_depth,
            block_bytes=row.point.block_bytes,
            fragments=row.point.fragments,
            operations=row.operations,
            seconds_mean=row.seconds_mean,
            seconds_median=row.seconds_median,
            seconds_p90=row.seconds_p90,
            seconds_p99=row.seconds_p99,
            bytes_per_s=row.bytes_per_s,
        )
        for row in report.rows
    )
    lines = fit_lines(rows)
    if not lines:
        raise ValueError(f"no mode was measured at {_LEAST_ROWS} points; give it more time")
    return StorageTier(
        name, provenance, _direct_io(report.direct_io), lines, held_out_errors(rows), rows
    )


def fit_lines(rows: Iterable[TierRow]) -> tuple[TierLine, ...]:
    """Fit each direction, mode and queue depth that has rows enough."""
    return tuple(_line(group, found) for group, found in _grouped(rows).items() if _enough(found))


def held_out_errors(rows: Iterable[TierRow]) -> tuple[TierHeldOut, ...]:
    """Return the errors of predicting each inner block size from the others, by direction and mode.

    The smallest and the largest stay in: without them a fit would be judged where nothing says
    what a byte, or an operation, costs.
    """
    errors: dict[tuple[str, str], list[float]] = {}
    for (direction, mode, _), found in _grouped(rows).items():
        for size in sorted({row.block_bytes for row in found})[1:-1]:
            seen = [row for row in found if row.block_bytes != size]
            if not _enough(seen):
                continue
            line = _line((direction, mode, 0), seen)
            for row in found:
                # What only the row that was left out could tell is not asked of the fit.
                asked = row.block_bytes == size and (
                    row.fragments == 1 or line.per_fragment_s is not None
                )
                if asked:
                    predicted = line.seconds(row.block_bytes, row.fragments)
                    error = 100 * abs(predicted / row.seconds_median - 1)
                    errors.setdefault((direction, mode), []).append(error)
    return tuple(
        TierHeldOut(
            *key, float(np.median(found)), float(np.percentile(found, 90)), len(found), SPLIT
        )
        for key, found in errors.items()
    )


def _grouped(rows: Iterable[TierRow]) -> dict[Group, list[TierRow]]:
    groups: dict[Group, list[TierRow]] = {}
    for row in rows:
        groups.setdefault((row.direction, row.io_mode, row.queue_depth), []).append(row)
    return groups


def _enough(rows: Sequence[TierRow]) -> bool:
    return len(rows) >= _LEAST_ROWS and len({row.block_bytes for row in rows}) > 1


def _line(group: Group, rows: Sequence[TierRow]) -> TierLine:
    alpha_s, per_fragment_s, rate = _fit(rows)
    return TierLine(
        direction=group[0],
        io_mode=group[1],
        queue_depth=group[2],
        alpha_s=alpha_s,
        per_fragment_s=per_fragment_s,
        bytes_per_s=rate,
        mean_over_median=_digits(_middle([row.seconds_mean / row.seconds_median for row in rows])),
        p99_over_mean=_digits(_middle([row.seconds_p99 / row.seconds_mean for row in rows])),
        rows=len(rows),
    )


def _fit(rows: Sequence[TierRow]) -> tuple[float, float | None, float]:
    """Return (alpha_s, per_fragment_s, bytes_per_s): robust least squares on log seconds."""
    from scipy.optimize import least_squares

    size = np.array([row.block_bytes for row in rows], dtype=np.float64)
    pieces = np.array([row.fragments for row in rows], dtype=np.float64)
    seconds = np.array([row.seconds_median for row in rows])
    fragmented = bool((pieces > 1).any())

    def residuals(logs: Matrix) -> Matrix:
        alpha, each, rate = np.exp(logs)
        predicted = alpha + (pieces * each if fragmented else 0.0) + size / rate
        return np.asarray(np.log(predicted) - np.log(seconds), dtype=np.float64)

    floor, largest = float(seconds[np.argmin(size)]), int(np.argmax(size))
    rate_start = float(np.clip(size[largest] / seconds[largest], 1e5, 1e12))
    bounds = np.log([[_LEAST_S, _LEAST_S, _LEAST_RATE], [_MOST_S, _MOST_S, _MOST_RATE]])
    # The robust loss lets a fragmented row be an outlier; so from several starts, the best of all.
    tries = [
        least_squares(
            residuals,
            np.log(
                [
                    np.clip(floor * (1 - share), 1e-8, 1.0),
                    np.clip(floor * share, 1e-8, 1.0),
                    rate_start,
                ]
            ),
            bounds=bounds,
            loss="soft_l1",
            f_scale=_SOFT_L1_SCALE,
        )
        for share in _STARTS
    ]
    found = min(tries, key=lambda one: float(one.cost)).x
    alpha, each, rate = (float(value) for value in np.exp(found))
    return _kept(alpha), _kept(each) if fragmented else None, _digits(rate)


def _kept(seconds: float) -> float:
    """Zero where the fit has pushed a term to nothing."""
    return _digits(seconds) if seconds > _NEGLIGIBLE_S else 0.0


def _middle(values: list[float]) -> float:
    return float(np.median(values))


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def _direct_io(found: "DirectIo") -> DirectIoFacts:
    refused = tuple(
        f"{_misaligned(one.buffer, one.offset, one.length)}: {one.error}"
        for one in found.combinations
        if one.error
    )
    return DirectIoFacts(found.problem, dict(found.least_bytes), refused)


def _misaligned(buffer: bool, offset: bool, length: bool) -> str:
    aligned = {"buffer": buffer, "offset": offset, "length": length}
    return "+".join(name for name, fits in aligned.items() if not fits) or "nothing"
