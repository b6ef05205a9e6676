"""Held-out error by shape: which part of a family's shapes is priced well."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrate.holdout import FAMILIES, Family, judged_rows
from hwmodels.given import gpu_of
from hwmodels.measured.held_out import SEED
from hwmodels.profile import HardwareProfile, HeldOut, Table
from hwmodels.spec import GpuSpec

MIN_ROWS = 5
"""Held-out rows of a group from which its error is told."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Group:
    """Some of a family's shapes, told by a table's columns."""

    name: str
    holds: Callable[[Table, GpuSpec], Mask]


def _floats(table: Table, column: str) -> NDArray[np.float64]:
    return table[column].astype(np.float64)


def _rows(low: int, high: float) -> Callable[[Table, GpuSpec], Mask]:
    return lambda table, _: (_floats(table, "m") >= low) & (_floats(table, "m") <= high)


def _elements(table: Table) -> NDArray[np.float64]:
    """KV elements of a head dimension: heads, sequences, tokens, keys and values."""
    return 2 * _floats(table, "kv_heads") * _floats(table, "batch") * _floats(table, "length")


def _bytes_over_l2(table: Table, gpu: GpuSpec) -> Mask:
    # Head dimension 128 in 16 bits: the groups need no more.
    return np.asarray(256 * _elements(table) > gpu.l2_bytes)


_GEMM = (
    Group("m 1-16", _rows(1, 16)),
    Group("m 17-128", _rows(17, 128)),
    Group("m 129-1024", _rows(129, 1024)),
    Group("m above 1024", _rows(1025, np.inf)),
)
_PREFILL = (
    Group("up to 1,024 tokens", lambda table, _: _floats(table, "length") <= 1024),
    Group("longer", lambda table, _: _floats(table, "length") > 1024),
)
_DECODE = (
    Group("KV within the L2", lambda table, gpu: ~_bytes_over_l2(table, gpu)),
    Group("KV beyond the L2", _bytes_over_l2),
)
GROUPS: dict[str, tuple[Group, ...]] = {"gemm": _GEMM, "prefill": _PREFILL, "decode": _DECODE}
"""By the family whose random rows are parted."""


def held_out_by_group(profile: HardwareProfile, seed: int = SEED) -> dict[str, HeldOut]:
    """Return the error of every group with enough rows, as `family: group`."""
    found = {}
    for family in FAMILIES:
        if family.name not in GROUPS:
            continue
        for group, errors in _errors(profile, family, seed):
            if len(errors) >= MIN_ROWS:
                found[f"{family.name}: {group.name}"] = HeldOut(
                    median_pct=round(float(np.median(errors)) * 100, 2),
                    p90_pct=round(float(np.percentile(errors, 90)) * 100, 2),
                    rows=len(errors),
                    seed=seed,
                    split=family.split,
                )
    return found


def _errors(
    profile: HardwareProfile, family: Family, seed: int
) -> Iterator[tuple[Group, NDArray[np.float64]]]:
    gpu, judged = gpu_of(profile), judged_rows(profile, family, seed)
    for group in GROUPS[family.name]:
        parts = [errors[group.holds(rows, gpu)] for _, rows, errors in judged]
        yield group, np.concatenate(parts) if parts else np.zeros(0)
