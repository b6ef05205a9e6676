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
def weigh(logits, seen, top, total):
    """Take a tile of logits [rows, tokens] into online softmax.

    Args:
        logits: in powers of two, see `LOG2_E`.
        seen: which token each row sees, [rows or 1, tokens]; each row some of its first tile.
        top: largest logit so far, [rows]; minus infinity before the first tile.
        total: sum of weights so far, [rows].

    Returns:
        Weights [rows, tokens], by what to multiply what was summed before, top, total.
    """
    logits = tl.where(seen, logits, float("-inf"))
    new_top = tl.maximum(top, tl.max(logits, axis=1))
    weights = tl.exp2(logits - new_top[:, None])
    shrink = tl.exp2(top - new_top)
    return weights, shrink, new_top, total * shrink + tl.sum(weights, axis=1)


@triton.jit
def attend(query, key, value, seen, scale, top, total, summed):
    """Take a tile of keys and values [tokens, dim] into attention of queries [rows, dim].

    Args:
        seen: as for `weigh`; values that no row sees must be finite, for zero times NaN is NaN.
        scale: of logits, times log2(e).
        summed: values times weights so far, [rows, dim], not normalised.

    Returns:
        top, total, summed.
    """
    logits = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
    weights, shrink, top, total = weigh(logits, seen, top, total)
    summed *= shrink[:, None]
    summed = tl.dot(weights.to(value.dtype), value, summed, input_precision="ieee")
    return top, total, summed


@triton.jit
def group_rows(
    seq,
    kv_head,
    seq_stride,
    head_stride,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
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
def store_sums(
    sums, part, splits, summed, GROUP: tl.constexpr, DIM: tl.constexpr, FIRST: tl.constexpr
):
    """Store a part's sums, of dims from FIRST on, of each query head of a KV head.

    Args:
        part: number of the first head's part; the next head's is `splits` further.
    """
    row = tl.arange(0, summed.shape[0])
    dims = FIRST + tl.arange(0, summed.shape[1])
    at = (part + row * splits)[:, None] * DIM + dims[None, :]
    tl.store(sums + at, summed, mask=(row < GROUP)[:, None])


@triton.jit
def store_stats(stats, part, splits, top, total, GROUP: tl.constexpr):
    """Store a part's largest logit and sum of weights, as `store_sums` its sums."""
    row = tl.arange(0, top.shape[0])
    at = (part + row * splits) * 2
    tl.store(stats + at, top, mask=row < GROUP)
    tl.store(stats + at + 1, total, mask=row < GROUP)
