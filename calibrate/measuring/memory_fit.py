"""What probes say of a GPU's memory: the parameters that `hwmodels.memory` takes from a profile.

Only what the rows identify is given. Latencies are in SM cycles, at the clock the profile knows.
"""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.measuring.steps import Plateau, plateaus
from hwmodels.profile import Table
from hwmodels.spec import GpuSpec

PAGE_BYTES = 2 * 2**20
"""Of device memory (public teardowns): the stride that visits each page once."""
_L1_REACH_BELOW, _L2_REACH_BELOW = 2**29, 2**34
"""A step of the page chase up to here is the first level's, up to there the second's."""
_LEAST_POINTS = 2
"""Of a plateau that is believed."""
_BEYOND_L2 = 4
_WITHIN_L2 = 0.5
_LARGE_BYTES = 2**30
_SMALL_BLOCK_BYTES = 2**17
_READ, _COPY = 0, 2

Tables = Mapping[str, Table]
Parameters = dict[str, Any]


def memory_parameters(tables: Tables, gpu: GpuSpec, clock_hz: float) -> Parameters:
    """Return what the probes' tables identify.

    Args:
        clock_hz: SM clock while they ran.
    """
    found: Parameters = {}
    for fit in _FITS:
        found.update(fit(tables, gpu, clock_hz))
    walkers = _walkers(tables, found, clock_hz)
    return {**found, **walkers}


def stream_bytes_per_s(tables: Tables, gpu: GpuSpec, mode: int = _READ) -> float | None:
    """Return how fast memory is read (or, mode 2, copied, both directions together) beyond the L2.

    The median over footprints of at least four times the L2.
    """
    x, rate = _bandwidths(tables, mode)
    beyond = x >= _BEYOND_L2 * gpu.l2_bytes
    return float(np.median(rate[beyond])) if beyond.any() else None


def _bandwidths(tables: Tables, mode: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Footprints and bytes/s of the stream probe in one mode."""
    table = tables.get("stream")
    if table is None:
        return np.zeros(0), np.zeros(0)
    mine = table["mode"] == mode
    size = table["bytes"][mine].astype(np.float64)
    moved = size * (2 if mode == _COPY else 1)
    return size, moved / table["seconds"][mine].astype(np.float64)


def _streams(tables: Tables, gpu: GpuSpec, _clock_hz: float) -> Parameters:
    found: Parameters = {}
    beyond = stream_bytes_per_s(tables, gpu)
    if beyond is not None:
        found["stream_bytes_per_s"] = _digits(beyond)
    x, rate = _resident(tables)
    inside = (x <= _WITHIN_L2 * gpu.l2_bytes) & (x >= gpu.l2_bytes / 16)
    # A read of what the L2 holds takes as long as its launch: only what bytes add tells.
    inner = _slope(x[inside], x[inside] / rate[inside])
    if inner is not None and inner > (beyond or 0.0):
        found["l2_bytes_per_s"] = _digits(inner)
    return found


def _resident(tables: Tables) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Footprints and bytes/s of reads that find in the L2 what fits there."""
    table = tables.get("l2_sweep")
    if table is None:
        return _bandwidths(tables, _READ)
    warm = table["cold"] == 0
    size = _floats(table, "bytes")[warm]
    return size, size / _floats(table, "seconds")[warm]


def _slope(size: NDArray[np.float64], seconds: NDArray[np.float64]) -> float | None:
    """Bytes/s by the median over pairs of points, one at least twice the other."""
    slopes = [
        (size[j] - size[i]) / (seconds[j] - seconds[i])
        for i in range(len(size))
        for j in range(len(size))
        if size[j] >= 2 * size[i] and seconds[j] > seconds[i]
    ]
    return float(np.median(slopes)) if slopes else None


def _latencies(tables: Tables, gpu: GpuSpec, clock_hz: float) -> Parameters:
    """The chase over lines: L2 near, L2 far, DRAM."""
    steps = [p for p in _chase(tables, clock_hz, pages=False) if p.points >= _LEAST_POINTS]
    if not steps:
        return {}
    found: Parameters = {}
    if steps[0].last <= gpu.l2_bytes:
        found["l2_near_cycles"] = _digits(steps[0].level)
    far = [p for p in steps[1:] if p.first < gpu.l2_bytes and p.last <= 1.25 * gpu.l2_bytes]
    if far and gpu.l2_segments > 1:
        found["l2_far_cycles"] = _digits(far[-1].level)
    if steps[-1].first > gpu.l2_bytes and len(steps) > 1:
        found["dram_cycles"] = _digits(steps[-1].level)
    return found


def _translation(tables: Tables, _gpu: GpuSpec, clock_hz: float) -> Parameters:
    """The chase over pages: each upward step is a level of the TLB that no longer reaches."""
    steps = [p for p in _chase(tables, clock_hz, pages=True) if p.points >= _LEAST_POINTS]
    found: Parameters = {}
    for before, after in pairwise(steps):
        added, reach = after.level - before.level, before.last
        if added <= 0:
            continue
        if reach <= _L1_REACH_BELOW:
            found.setdefault("tlb_l1_entries", round(reach / PAGE_BYTES))
            found.setdefault("tlb_l1_miss_cycles", _digits(added))
        elif reach <= _L2_REACH_BELOW:
            found.setdefault("tlb_l2_reach_bytes", int(reach))
            found.setdefault("tlb_l2_miss_cycles", _digits(added))
        else:
            found.setdefault("tlb_l3_reach_bytes", int(reach))
            found.setdefault("walk_cycles", _digits(added))
    return found


def _chase(tables: Tables, clock_hz: float, *, pages: bool) -> list[Plateau]:
    table = tables.get("chase")
    if table is None:
        return []
    mine = (_floats(table, "stride_bytes") >= PAGE_BYTES) == pages
    cycles = table["seconds"][mine].astype(np.float64) * clock_hz
    return plateaus(table["footprint_bytes"][mine].tolist(), cycles.tolist())


def _walkers(tables: Tables, found: Parameters, clock_hz: float) -> Parameters:
    """Pages visited a second beyond the last level's reach, times the seconds of a walk.

    Only where bandwidth grows with the block: else memory limits, not walks.
    """
    table, reach = tables.get("gather"), found.get("tlb_l3_reach_bytes")
    if table is None or reach is None or "walk_cycles" not in found:
        return {}
    every, footprint = _floats(table, "block_bytes"), _floats(table, "footprint_bytes")
    beyond = (footprint > reach) & (every <= _SMALL_BLOCK_BYTES)
    blocks = every[beyond]
    if len(np.unique(blocks)) < 2:
        return {}
    visits = 1.0 / table["seconds"][beyond].astype(np.float64)
    small, next_small = np.unique(blocks)[:2]
    smallest, doubled = visits[blocks == small], visits[blocks == next_small]
    if np.median(smallest) > 1.3 * np.median(doubled):
        return {}
    walk_s = found["walk_cycles"] / clock_hz
    return {"walkers": max(1, round(float(np.median(smallest)) * walk_s))}


def _offsets(tables: Tables, _gpu: GpuSpec, _clock_hz: float) -> Parameters:
    """How much slower a copy from a misaligned base is, where memory limits it: the worst."""
    table = tables.get("offset_copy")
    if table is None:
        return {}
    large = table["bytes"] == table["bytes"].max()
    offset, seconds = table["offset_bytes"][large], table["seconds"][large].astype(np.float64)
    aligned, misaligned = seconds[offset % 128 == 0], seconds[offset % 128 != 0]
    if not len(aligned) or not len(misaligned):
        return {}
    return {"offset_copy_slowdown": _digits(max(1.0, float(misaligned.max() / np.median(aligned))))}


def _alignment(tables: Tables, _gpu: GpuSpec, _clock_hz: float) -> Parameters:
    """Speed of a product by what its leading dimension is a multiple of, 16 bytes being 1.

    The library's product where it was measured, since engines call it; medians over products.
    """
    table = tables.get("lda")
    if table is None:
        return {}
    rows = list(zip(*(table[n].tolist() for n in ("m", "n", "k", "library", "lda", "seconds")),
                    strict=True))  # fmt: skip
    library = max(int(row[3]) for row in rows)
    times: dict[tuple[int, ...], dict[int, list[float]]] = {}
    for m, n, k, own, lda, seconds in rows:
        if own == library:
            by_class = times.setdefault((m, n, k), {})
            by_class.setdefault(math.gcd(2 * int(lda), 16), []).append(float(seconds))
    speeds: dict[int, list[float]] = {}
    for by_class in times.values():
        for size, seconds in by_class.items() if 16 in by_class else ():
            speed = float(np.median(by_class[16]) / np.median(seconds))
            speeds.setdefault(size, []).append(speed)
    if len(speeds) < 2:
        return {}
    found = {str(size): _digits(float(np.median(speeds[size]))) for size in sorted(speeds)[::-1]}
    return {"alignment_speed": found}


_FITS: tuple[Callable[[Tables, GpuSpec, float], Parameters], ...] = (
    _streams,
    _latencies,
    _translation,
    _offsets,
    _alignment,
)


def _floats(table: Table, column: str) -> NDArray[np.float64]:
    return table[column].astype(np.float64)


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
