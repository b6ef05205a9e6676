"""Decode attention over a paged cache of codes in int4, two to a byte."""

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
def _scale_words(scales, row, seen, half, DIM: tl.constexpr, GROUP: tl.constexpr):
    """Load the words [tokens, groups of a half], each a scale and a lowest value in fp16."""
    HALF: tl.constexpr = DIM // 2
    WIDTH: tl.constexpr = GROUP if GROUP < HALF else HALF
    group = (half * HALF + tl.arange(0, HALF // WIDTH) * WIDTH) // GROUP
    at = row[:, None] * (DIM // GROUP) + group[None, :]
    return tl.load(scales + at, mask=seen[:, None], other=0)


@triton.jit
def _widened(codes, words):
    """Return the elements [tokens, dim / 2] of codes 0 to 15, in fp32."""
    TOKENS: tl.constexpr = codes.shape[0]
    HALF: tl.constexpr = codes.shape[1]
    COUNT: tl.constexpr = words.shape[1]
    scale = (words & 0xFFFF).to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
    lowest = (words >> 16).to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
    grouped = tl.reshape(codes.to(tl.float32), (TOKENS, COUNT, HALF // COUNT))
    return tl.reshape(grouped * scale[:, :, None] + lowest[:, :, None], (TOKENS, HALF))


@triton.jit
def _four_bit_decode(
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
    table_stride,
    out_seq_stride,
    out_head_stride,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    SPLIT: tl.constexpr,
    CODES: tl.constexpr,
):
    # Low and high bits of a byte are elements of dim's two halves: each half has its own product.
    HALF: tl.constexpr = DIM // 2
    kv_head, split, seq = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    kv_heads, splits = tl.num_programs(0), tl.num_programs(1)
    length = tl.load(context_lens + seq)
    part_tokens = split_tokens(length, splits, TILE)
    first = split * part_tokens
    if (first >= length) & (split > 0):
        return
    last = tl.minimum(first + part_tokens, length)
    tokens, dims = tl.arange(0, TILE), tl.arange(0, HALF)
    at, real = group_rows(seq, kv_head, query_seq_stride, query_head_stride, GROUP, ROWS, HALF)
    query_low = tl.load(query + at, mask=real, other=0.0)
    query_high = tl.load(query + at + HALF, mask=real, other=0.0)
    kind = query.dtype.element_ty
    top, total = tl.full((ROWS,), float("-inf"), tl.float32), tl.zeros((ROWS,), tl.float32)
    low, high = tl.zeros((ROWS, HALF), tl.float32), tl.zeros((ROWS, HALF), tl.float32)
    table = block_tables + seq * table_stride
    for start in range(first, last, TILE):
        seen = start + tokens < last
        row = page_rows(table, start, seen, BLOCK * kv_heads, kv_heads, BLOCK) + kv_head
        cached = row[:, None] * HALF + dims[None, :]
        key = tl.load(key_codes + cached, mask=seen[:, None], other=0)
        value = tl.load(value_codes + cached, mask=seen[:, None], other=0)
        key_low = _widened(key & 15, _scale_words(key_scales, row, seen, 0, DIM, CODES))
        key_high = _widened(key >> 4, _scale_words(key_scales, row, seen, 1, DIM, CODES))
        logits = tl.dot(query_low, tl.trans(key_low.to(kind)))
        logits = tl.dot(query_high, tl.trans(key_high.to(kind)), logits) * scale
        weights, shrink, top, total = weigh(logits, seen[None, :], top, total)
        value_low = _widened(value & 15, _scale_words(value_scales, row, seen, 0, DIM, CODES))
        value_high = _widened(value >> 4, _scale_words(value_scales, row, seen, 1, DIM, CODES))
        low = tl.dot(weights.to(kind), value_low.to(kind), low * shrink[:, None])
        high = tl.dot(weights.to(kind), value_high.to(kind), high * shrink[:, None])
    if SPLIT:
        part = (seq * kv_heads + kv_head) * GROUP * splits + split
        store_sums(sums, part, splits, low, GROUP, DIM, 0)
        store_sums(sums, part, splits, high, GROUP, DIM, HALF)
        store_stats(stats, part, splits, top, total, GROUP)
    else:
        at, real = group_rows(seq, kv_head, out_seq_stride, out_head_stride, GROUP, ROWS, HALF)
        tl.store(out + at, normalised(total, low).to(out.dtype.element_ty), mask=real)
        tl.store(out + at + HALF, normalised(total, high).to(out.dtype.element_ty), mask=real)
