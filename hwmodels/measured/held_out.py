"""Which rows of a measured table are held out to judge what prices it."""

import zlib

import numpy as np
from numpy.typing import NDArray

from hwmodels.profile import Table

SEED = 20
SHARE = 0.2

Mask = NDArray[np.bool_]


def held_rows(
    name: str,
    table: Table,
    groups: tuple[str, ...] = (),
    seed: int = SEED,
    share: float = SHARE,
) -> Mask:
    """Return which rows of a table are held out: one, or one whole group, in five.

    The first and the last sizes of a collective stay.

    Args:
        name: of the table.
        table: its columns.
        groups: columns whose combinations go as a whole; empty: single rows.
        seed: which ones.
        share: how many.
    """
    sequence = np.random.SeedSequence([seed, zlib.crc32(f"{name}{groups}".encode())])
    random = np.random.default_rng(sequence)
    if groups:
        keys = np.stack([table[column].astype(np.int64) for column in groups], axis=1)
        unique, position = np.unique(keys, axis=0, return_inverse=True)
        chosen = random.random(len(unique)) < share
        held: Mask = chosen[position.reshape(-1)]
        return held
    held = random.random(len(table["seconds"])) < share
    if "bytes" in table:
        sizes = table["bytes"]
        held &= (sizes > sizes.min()) & (sizes < sizes.max())
    return held


def kept(table: Table, mask: Mask) -> Table:
    """Return the rows of a table that a mask names."""
    return {name: column[mask] for name, column in table.items()}
