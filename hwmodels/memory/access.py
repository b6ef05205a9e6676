"""Access patterns as addresses, for the simulator: decode reads, chases, strides."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hwmodels.memory.layout import KvLayout

Ints = NDArray[np.int64]


def block_ids(layout: KvLayout, count: int, rng: np.random.Generator) -> Ints:
    """Return the blocks that hold `count` blocks of KV: the lowest ones, or any."""
    if count > layout.num_blocks:
        raise ValueError(f"{count} blocks of a pool of {layout.num_blocks}")
    if layout.order == "compact":
        return np.arange(count, dtype=np.int64)
    return rng.choice(layout.num_blocks, size=count, replace=False).astype(np.int64)


def block_visits(layout: KvLayout, layer: int, blocks: Ints) -> tuple[Ints, int]:
    """Return (first bytes, bytes) of the pieces that one layer's decode reads, block by block."""
    pieces = layout.pieces(layer)
    starts = np.stack([piece.start + blocks * piece.stride for piece in pieces], axis=1)
    return starts.reshape(-1), pieces[0].segment


def head_rows(layout: KvLayout, layer: int, blocks: Ints, tokens: int, head: int) -> Ints:
    """Return the first bytes of the rows that one head of one sequence reads, in order.

    Args:
        layout: of the pool.
        layer: whose kernel it is.
        blocks: the sequence's blocks in order of its tokens.
        tokens: its length.
        head: KV head of this rank.
    """
    rows = [
        layout.address(layer, int(blocks[t // layout.block_tokens]), tensor,
                       t % layout.block_tokens, head)
        for t in range(tokens)
        for tensor in range(layout.tensors)
    ]  # fmt: skip
    return np.array(rows, dtype=np.int64)


def decode_rows(
    layout: KvLayout, layer: int, tables: Sequence[Ints], lengths: Sequence[int]
) -> Ints:
    """Return the rows that decode attention of one layer reads: sequences, then heads."""
    parts = [
        head_rows(layout, layer, blocks, tokens, head)
        for blocks, tokens in zip(tables, lengths, strict=True)
        for head in range(layout.kv_heads)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def spread(starts: Ints, size: int, grain: int) -> Ints:
    """Return one address a touched `grain` of ranges of `size` bytes, range by range."""
    first, last = starts // grain, (starts + size - 1) // grain
    counts = last - first + 1
    ahead = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    addresses: Ints = (np.repeat(first, counts) + ahead) * grain
    return addresses


def strided(count: int, stride: int, start: int = 0) -> Ints:
    """Return `count` addresses a stride apart."""
    return start + stride * np.arange(count, dtype=np.int64)


def chase(footprint_bytes: int, stride: int, rng: np.random.Generator) -> Ints:
    """Return one round of a pointer chase: every stride of the footprint once, in random order."""
    count = max(1, footprint_bytes // stride)
    return rng.permutation(count).astype(np.int64) * stride


def random_accesses(footprint_bytes: int, grain: int, count: int, rng: np.random.Generator) -> Ints:
    """Return `count` independent accesses, each anywhere in the footprint."""
    return rng.integers(0, footprint_bytes // grain, size=count, dtype=np.int64) * grain


def column_words(stride_words: int, lanes: int = 32) -> Ints:
    """Return the words of shared memory that the lanes of a warp read down a column."""
    return stride_words * np.arange(lanes, dtype=np.int64)
