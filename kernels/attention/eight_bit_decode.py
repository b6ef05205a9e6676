"""Decode attention over a paged cache of codes in fp8 or int8."""

import triton
import triton.language as tl

from kernels.attention.tiles import (
    group_rows,
    normalised,
    page_rows,
    split_tokens,
    store_stats,
    store_sums,
    weigh,
)


@triton.jit
def _eight_bit_decode(
    query,
    key_codes,
    value_codes,
    key_scales,
    value_scales,
    block_tables,
    context_lens,
    out,
    sums,
    stats,
    scale,
    query_seq_stride,
    query_head_stride,
    scale_stride,
    table_stride,
    out_seq_stride,
    out_head_stride,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    SPLIT: tl.constexpr,
    PER_TOKEN: tl.constexpr,
):
    kv_head, split, seq = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    kv_heads, splits = tl.num_programs(0), tl.num_programs(1)
    length = tl.load(context_lens + seq)
    part_tokens = split_tokens(length, splits, TILE)
    first = split * part_tokens
    if (first >= length) & (split > 0):
        return
    last = tl.minimum(first + part_tokens, length)
    tokens, dims = tl.arange(0, TILE), tl.arange(0, DIM)
    at, real = group_rows(seq, kv_head, query_seq_stride, query_head_stride, GROUP, ROWS, DIM)
    queries = tl.load(query + at, mask=real, other=0.0)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total, summed = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS, DIM), tl.float32)
    table = block_tables + seq * table_stride
    if not PER_TOKEN:
        scale *= tl.load(key_scales + kv_head * scale_stride)
    for start in range(first, last, TILE):
        seen = start + tokens < last
        row = page_rows(table, start, seen, BLOCK * kv_heads, kv_heads, BLOCK) + kv_head
        cached = row[:, None] * DIM + dims[None, :]
        # Codes are exact in 16 bits; scales are applied to sums and weights, in fp32.
        key = tl.load(key_codes + cached, mask=seen[:, None], other=0.0).to(query.dtype.element_ty)
        value = tl.load(value_codes + cached, mask=seen[:, None], other=0.0)
        value = value.to(query.dtype.element_ty)
        logits = tl.dot(queries, tl.trans(key)) * scale
        if PER_TOKEN:
            logits *= tl.load(key_scales + row, mask=seen, other=0.0)[None, :]
        weights, shrink, top, total = weigh(logits, seen[None, :], top, total)
        summed *= shrink[:, None]
        if PER_TOKEN:
            # Times scales relative to the tile's largest: as they are, fp16 might not hold them.
            scales = tl.load(value_scales + row, mask=seen, other=0.0)
            largest = tl.max(scales, axis=0)
            weights *= (scales / tl.where(largest > 0.0, largest, 1.0))[None, :]
            summed += tl.dot(weights.to(value.dtype), value) * largest
        else:
            summed = tl.dot(weights.to(value.dtype), value, summed)
    if not PER_TOKEN:
        summed *= tl.load(value_scales + kv_head * scale_stride)
    if SPLIT:
        part = (seq * kv_heads + kv_head) * GROUP * splits + split
        store_sums(sums, part, splits, summed, GROUP, DIM, 0)
        store_stats(stats, part, splits, top, total, GROUP)
    else:
        at, real = group_rows(seq, kv_head, out_seq_stride, out_head_stride, GROUP, ROWS, DIM)
        tl.store(out + at, normalised(total, summed).to(out.dtype.element_ty), mask=real)
