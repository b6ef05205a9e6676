"""What attention kernels share: tiles of online softmax, and which tokens a program reads."""

import triton
import triton.language as tl

LOG2_E = 1.4426950408889634
"""Logits are kept in powers of two, since exp2 is what the hardware has."""


@triton.jit
def split_tokens(length, splits, TILE: tl.constexpr):
    """Return how many tokens each part of a sequence takes: whole tiles, and at least one.

    A sequence is cut by its own length, so that short and long ones use all parts alike.
    """
    return tl.maximum(tl.cdiv(tl.cdiv(length, TILE), splits), 1) * TILE


@triton.jit
def page_rows(table, start, seen, block_stride, token_stride, BLOCK: tl.constexpr):
    """Return each token's offset (int64, in elements) in a paged cache, by its block table.

    Args:
        start: the tile's first token, a multiple of the tile's length.
        seen: which of the tile's tokens there are [tokens]; the table may not name others' blocks.
    """
    TILE: tl.constexpr = seen.shape[0]
    tokens = tl.arange(0, TILE)
    if BLOCK >= TILE:
        block = tl.load(table + start // BLOCK).to(tl.int64)
        rows = block * block_stride + (start % BLOCK + tokens) * token_stride
    else:
        at = start + tokens
        blocks = tl.load(table + at // BLOCK, mask=seen, other=0).to(tl.int64)
        rows = blocks * block_stride + (at % BLOCK) * token_stride
    return rows


@triton.jit
def attend(query, key, value, seen, scale, top, total, summed):
    """Take a tile of keys and values [tokens, dim] into online softmax of queries [rows, dim].

    Args:
        seen: which token each row sees, [rows or 1, tokens]. A row sees some token of its first
            tile. Values that no row sees must be finite, since zero times NaN is NaN.
        scale: of logits, times log2(e).
        top: largest logit so far, [rows]; minus infinity before the first tile.
        total: sum of weights so far, [rows].
        summed: values times weights so far, [rows, dim], not normalised.
    """
    logits = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
    logits = tl.where(seen, logits, float("-inf"))
    new_top = tl.maximum(top, tl.max(logits, axis=1))
    weights = tl.exp2(logits - new_top[:, None])
    shrink = tl.exp2(top - new_top)
    total = total * shrink + tl.sum(weights, axis=1)
    summed = tl.dot(
        weights.to(value.dtype), value, summed * shrink[:, None], input_precision="ieee"
    )
    return new_top, total, summed


@triton.jit
def group_rows(
    seq, kv_head, seq_stride, head_stride, GROUP: tl.constexpr, ROWS: tl.constexpr, DIM: tl.constexpr
):
    """Return (offsets [rows, dim], which rows are real [rows, 1]) of a KV head's query heads."""
    row, dims = tl.arange(0, ROWS), tl.arange(0, DIM)
    head = (kv_head * GROUP + row).to(tl.int64)
    offsets = seq * seq_stride + head[:, None] * head_stride + dims[None, :]
    return offsets, (row < GROUP)[:, None]


@triton.jit
def normalised(total, summed):
    """Return sums [rows, dim] over their weights; zero where there was no token."""
    return summed / tl.where(total > 0.0, total, 1.0)[:, None]


@triton.jit
def store_part(sums, stats, part, top, total, summed, GROUP: tl.constexpr, splits):
    """Store a part of each query head of a KV head, not normalised.

    Args:
        part: number of the first head's part; the next head's lies `splits` further.
    """
    ROWS: tl.constexpr = summed.shape[0]
    DIM: tl.constexpr = summed.shape[1]
    row, dims = tl.arange(0, ROWS), tl.arange(0, DIM)
    parts, real = part + row * splits, row < GROUP
    tl.store(sums + parts[:, None] * DIM + dims[None, :], summed, mask=real[:, None])
    tl.store(stats + parts * 2, top, mask=real)
    tl.store(stats + parts * 2 + 1, total, mask=real)
