"""Held-out error of a profile: rows are taken away, and the cost model must price them.

Three ways to take rows away, since they answer different questions:

- `random rows`: one row in five. Neighbours on every axis are left, as inside a measured shape.
- `unseen (n, k)` and `unseen heads`: one whole shape in five. What a network whose shapes nobody
  measured meets.
- `unseen m`: one whole column of m in five. What a batch size between the measured ones meets.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrate.collective_lines import all_lines
from hwmodels.given import gpu_of
from hwmodels.measured.held_out import SEED, SHARE, held_rows, kept
from hwmodels.measured.rows import predicted_seconds
from hwmodels.measured.tables import kernel_of
from hwmodels.profile import HardwareProfile, HeldOut, Table

RANDOM = "random rows"
MIN_ROWS = 20
"""Held-out rows of a family from which its error is told."""


@dataclass(frozen=True, slots=True)
class Family:
    """Tables judged together, under one name and split.

    Attributes:
        groups: columns whose combinations are taken away as a whole; empty: single rows.
        share: how much is taken away.
    """

    name: str
    tables: tuple[str, ...]
    split: str = RANDOM
    groups: tuple[str, ...] = ()
    share: float = SHARE


_FULL_HEADS = ("64", "128", "192", "256")


def _attention(kernel: str, dtype: str) -> tuple[str, ...]:
    return tuple(f"{kernel}.{head}.{dtype}" for head in _FULL_HEADS)


FAMILIES: tuple[Family, ...] = (
    Family("gemm", ("gemm.bf16",)),
    Family("gemm, unseen (n, k)", ("gemm.bf16",), "one shape in five", ("n", "k")),
    Family("gemm, unseen m", ("gemm.bf16",), "one m in five", ("m",)),
    Family("gemm fp8", ("gemm.fp8",)),
    Family("gemm fp8_block", ("gemm.fp8_block",)),
    Family("gemm weight-only", ("gemm.int8", "gemm.int4")),
    Family("prefill", _attention("prefill", "bf16")),
    Family(
        "prefill, unseen heads",
        _attention("prefill", "bf16"),
        "one pair of head counts in five",
        ("heads", "kv_heads"),
    ),
    Family(
        "prefill over a prefix",
        ("prefill_cached.64.bf16", "prefill_cached.128.bf16"),
        "all rows: no table prices them",
        share=1.0,
    ),
    Family("prefill fp8", _attention("prefill", "fp8")),
    Family("prefill mla", ("prefill.mla.bf16", "prefill.mla.fp8")),
    Family("decode", _attention("decode", "bf16")),
    Family(
        "decode, unseen heads",
        _attention("decode", "bf16"),
        "one pair of head counts in five",
        ("heads", "kv_heads"),
    ),
    Family("decode fp8", _attention("decode", "fp8")),
    Family("decode int8", _attention("decode", "int8")),
    Family("decode int4", _attention("decode", "int4")),
    Family("decode mla", ("decode.mla.bf16", "decode.mla.fp8")),
    Family("experts", ("experts.bf16", "experts.fp8", "experts.fp8_block", "experts.mxfp4")),
    Family("all_reduce", ("nccl.all_reduce", "engine_all_reduce")),
    Family("other collectives", ("nccl.all_gather", "nccl.reduce_scatter", "nccl.all_to_all")),
)


def held_out_errors(profile: HardwareProfile, seed: int = SEED) -> dict[str, HeldOut]:
    """Return the error of every family the profile has tables for.

    The interpolators are the cost model's own, built on a profile without the rows taken away.
    """
    found = {family.name: family_error(profile, family, seed) for family in FAMILIES}
    return {name: error for name, error in found.items() if error is not None}


def family_error(profile: HardwareProfile, family: Family, seed: int = SEED) -> HeldOut | None:
    """Return the error of one family; None if the profile has too few rows to tell."""
    errors = _family_errors(profile, family, seed)
    if len(errors) < MIN_ROWS:
        return None
    return HeldOut(
        median_pct=round(float(np.median(errors)) * 100, 2),
        p90_pct=round(float(np.percentile(errors, 90)) * 100, 2),
        rows=len(errors),
        seed=seed,
        split=family.split,
    )


def without_random_rows(profile: HardwareProfile, seed: int = SEED) -> HardwareProfile:
    """Return the profile without the rows that the random split holds out: what fits may see."""
    tables = {name: kept(t, ~held_rows(name, t, (), seed)) for name, t in profile.tables.items()}
    return replace(profile, tables=tables)


def _family_errors(profile: HardwareProfile, family: Family, seed: int) -> NDArray[np.float64]:
    errors = [errors for _, _, errors in judged_rows(profile, family, seed)]
    return np.concatenate(errors) if errors else np.zeros(0)


def judged_rows(
    profile: HardwareProfile, family: Family, seed: int = SEED
) -> list[tuple[str, Table, NDArray[np.float64]]]:
    """Return the rows held out of each table of a family, and the error of each."""
    names = [name for name in family.tables if name in profile.tables]
    masks = {
        name: held_rows(name, profile.tables[name], family.groups, seed, family.share)
        for name in names
    }
    tables = dict(profile.tables)
    tables.update({name: kept(tables[name], ~mask) for name, mask in masks.items()})
    # A table that lost all its rows is none.
    tables = {name: table for name, table in tables.items() if len(table["seconds"])}
    reduced = replace(profile, tables=tables)
    if any(kernel_of(name) == "nccl" for name in names):
        reduced = replace(
            reduced, parameters={**profile.parameters, "collectives": all_lines(reduced)}
        )
    held = {name: kept(profile.tables[name], masks[name]) for name in names}
    return [(name, rows, price_rows(reduced, name, rows)) for name, rows in held.items()]


def price_rows(
    reduced: HardwareProfile, name: str, rows: Table, *, signed: bool = False
) -> NDArray[np.float64]:
    """Return the relative error of each row of a table under another profile, absolute or not."""
    predicted = predicted_seconds(reduced, gpu_of(reduced), name, rows)
    if not len(predicted):
        return np.zeros(0)
    errors: NDArray[np.float64] = predicted / rows["seconds"].astype(np.float64) - 1
    return errors if signed else np.abs(errors)
