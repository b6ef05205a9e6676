"""Chunked prefill over a paged KV cache: packed queries of several sequences, causal."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.attention.chip import chip_of
from kernels.attention.inputs import (
    check_block_span,
    check_block_tokens,
    check_lengths,
    check_pair,
    check_query,
    check_tables,
)
from kernels.attention.tiles import LOG2_E, attend, normalised, page_rows
from kernels.checks import check, check_tensor


@dataclass(frozen=True, slots=True)
class PrefillConfig:
    """How a program of the prefill kernel runs.

    Attributes:
        rows: query rows (token and head) to a program, a power of two.
        tile_tokens: cached tokens to a tile, a power of two.
    """

    rows: int
    tile_tokens: int
    warps: int
    stages: int


def prefill_config(dim: int, element_bytes: int, capability: int) -> PrefillConfig:
    """Return the configuration for a head's dim, the bytes of an element and a part (80, 90).

    As compiled: those that don't spill, tiles as large as registers allow.
    """
    if element_bytes == 4:  # products by single multiplications, not tensor cores
        return PrefillConfig(16, 32 if dim < 256 else 16, 8, 3)
    if dim == 256:
        return PrefillConfig(64, 32, 8, 5)
    if dim == 128 and capability < 90:
        return PrefillConfig(128, 32, 8, 5)
    return PrefillConfig(128, 64, 8, 5)


@triton.jit
def _paged_prefill(
    query,
    key_cache,
    value_cache,
    block_tables,
    query_starts,
    context_lens,
    out,
    scale,
    query_token_stride,
    query_head_stride,
    block_stride,
    token_stride,
    kv_head_stride,
    table_stride,
    out_token_stride,
    out_head_stride,
    GROUP: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
):
    # A row is one query token and one of the query heads that share a KV head. The last rows see
    # most, so they start first.
    first_row = (tl.num_programs(0) - 1 - tl.program_id(0)) * ROWS
    kv_head, seq = tl.program_id(1), tl.program_id(2).to(tl.int64)
    begin = tl.load(query_starts + seq)
    queries = tl.load(query_starts + seq + 1) - begin
    if first_row >= queries * GROUP:
        return
    before = tl.load(context_lens + seq) - queries
    row, dims, tokens = first_row + tl.arange(0, ROWS), tl.arange(0, DIM), tl.arange(0, TILE)
    token, head = row // GROUP, (kv_head * GROUP + row % GROUP).to(tl.int64)
    real, from_token = (token < queries)[:, None], (begin + token).to(tl.int64)
    at = from_token[:, None] * query_token_stride + head[:, None] * query_head_stride
    asked = tl.load(query + at + dims[None, :], mask=real, other=0.0)
    position = before + tl.minimum(token, queries - 1)
    end = before + tl.minimum((first_row + ROWS - 1) // GROUP, queries - 1) + 1
    # All rows see all tokens of the tiles before this.
    whole = (before + first_row // GROUP + 1) // TILE * TILE
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total, summed = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS, DIM), tl.float32)
    table = block_tables + seq * table_stride
    keys = key_cache + kv_head.to(tl.int64) * kv_head_stride
    values = value_cache + kv_head.to(tl.int64) * kv_head_stride
    for start in range(0, whole, TILE):
        every = tokens < TILE
        cached = page_rows(table, start, every, block_stride, token_stride, BLOCK)
        cached = cached[:, None] + dims[None, :]
        key, value = tl.load(keys + cached), tl.load(values + cached)
        top, total, summed = attend(asked, key, value, every[None, :], scale, top, total, summed)
    for start in range(whole, end, TILE):
        there = start + tokens < end
        cached = page_rows(table, start, there, block_stride, token_stride, BLOCK)
        cached = cached[:, None] + dims[None, :]
        key = tl.load(keys + cached, mask=there[:, None], other=0.0)
        value = tl.load(values + cached, mask=there[:, None], other=0.0)
        seen = (start + tokens)[None, :] <= position[:, None]
        top, total, summed = attend(asked, key, value, seen, scale, top, total, summed)
    at = from_token[:, None] * out_token_stride + head[:, None] * out_head_stride
    result = normalised(total, summed).to(out.dtype.element_ty)
    tl.store(out + at + dims[None, :], result, mask=real)


def paged_prefill(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_tables: torch.Tensor,
    query_starts: torch.Tensor,
    context_lens: torch.Tensor,
    *,
    scale: float | None = None,
    max_query_tokens: int | None = None,
    out: torch.Tensor | None = None,
    config: PrefillConfig | None = None,
) -> torch.Tensor:
    """Return causal attention of each sequence's newest tokens over all its cached tokens.

    Args:
        query: [tokens, heads, dim] of fp16, bf16 or fp32; dim 64, 128 or 256. The sequences'
            queries follow each other; each one's are the last tokens of its context, whose keys
            and values must be in the cache already.
        key_cache: [blocks, block_tokens, kv_heads, dim], as for `paged_decode`.
        value_cache: like key_cache, strides too.
        block_tables: int32 [seqs, max_blocks].
        query_starts: int32 [seqs + 1]: sequence i asks with queries query_starts[i] to
            query_starts[i + 1]; a sequence may ask nothing. Rows of `query` beyond the last are
            left as they are.
        context_lens: int32 [seqs]: all tokens of each, its queries included.
        scale: of logits; None: 1 / sqrt(dim).
        max_query_tokens: bound on one sequence's queries. None: read from the device, which
            waits for it.
        out: [tokens, heads, dim]; None: a new tensor.
        config: rows, tile, warps and stages; None: by dim and dtype.

    Raises:
        KernelInputError: wrong shape, dtype, device or number.
    """
    check_pair(key_cache, value_cache, query, ("key_cache", "value_cache"))
    _, block_tokens, kv_heads, dim = key_cache.shape
    out = check_query(query, kv_heads, out)
    tokens, heads, _ = query.shape
    check_block_tokens(block_tokens)
    check_block_span(key_cache)
    check_lengths(context_lens, len(context_lens), query.device)
    seqs = context_lens.shape[0]
    check_tensor("query_starts", query_starts, (seqs + 1,), (torch.int32,), query.device)
    check_tables(block_tables, seqs, query.device)
    if tokens == 0 or heads == 0 or seqs == 0:
        return out
    if max_query_tokens is None:
        max_query_tokens = int((query_starts[1:] - query_starts[:-1]).max())
    check(max_query_tokens >= 0, f"max_query_tokens is {max_query_tokens}; 0 or more is needed")
    if max_query_tokens == 0:
        return out
    capability = chip_of(query.device).capability
    config = config or prefill_config(dim, query.element_size(), capability)
    group = heads // kv_heads
    programs = -(-max_query_tokens * group // config.rows)
    _paged_prefill[(programs, kv_heads, seqs)](
        query,
        key_cache,
        value_cache,
        block_tables,
        query_starts,
        context_lens,
        out,
        (dim**-0.5 if scale is None else scale) * LOG2_E,
        *query.stride()[:2],
        *key_cache.stride()[:3],
        block_tables.stride(0),
        *out.stride()[:2],
        GROUP=group,
        DIM=dim,
        BLOCK=block_tokens,
        ROWS=config.rows,
        TILE=config.tile_tokens,
        num_warps=config.warps,
        num_stages=config.stages,
    )
    return out
