"""Decode attention over a paged KV cache: one query token a sequence, grouped heads."""

import torch
import triton
import triton.language as tl

from kernels.attention.inputs import (
    check_block_span,
    check_block_tokens,
    check_lengths,
    check_pair,
    check_query,
    check_tables,
)
from kernels.attention.splitting import (
    DecodeConfig,
    decode_config,
    make_parts,
    merge_parts,
    splits_for,
)
from kernels.attention.tiles import (
    LOG2_E,
    attend,
    group_rows,
    normalised,
    page_rows,
    split_tokens,
    store_stats,
    store_sums,
)


@triton.jit
def _paged_decode(
    query,
    key_cache,
    value_cache,
    block_tables,
    context_lens,
    out,
    sums,
    stats,
    scale,
    query_seq_stride,
    query_head_stride,
    block_stride,
    token_stride,
    kv_head_stride,
    table_stride,
    out_seq_stride,
    out_head_stride,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    SPLIT: tl.constexpr,
):
    # KV heads run fastest: programs that run together then read whole rows of the cache.
    kv_head, split, seq = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    length = tl.load(context_lens + seq)
    part_tokens = split_tokens(length, tl.num_programs(1), TILE)
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
    keys = key_cache + kv_head.to(tl.int64) * kv_head_stride
    values = value_cache + kv_head.to(tl.int64) * kv_head_stride
    for start in range(first, last, TILE):
        seen = start + tokens < last
        cached = page_rows(table, start, seen, block_stride, token_stride, BLOCK)
        cached = cached[:, None] + dims[None, :]
        key = tl.load(keys + cached, mask=seen[:, None], other=0.0)
        value = tl.load(values + cached, mask=seen[:, None], other=0.0)
        top, total, summed = attend(queries, key, value, seen[None, :], scale, top, total, summed)
    if SPLIT:
        splits = tl.num_programs(1)
        part = (seq * tl.num_programs(0) + kv_head) * GROUP * splits + split
        store_sums(sums, part, splits, summed, GROUP, DIM, 0)
        store_stats(stats, part, splits, top, total, GROUP)
    else:
        at, real = group_rows(seq, kv_head, out_seq_stride, out_head_stride, GROUP, ROWS, DIM)
        result = normalised(total, summed).to(out.dtype.element_ty)
        tl.store(out + at, result, mask=real)


def paged_decode(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    *,
    scale: float | None = None,
    max_context_tokens: int | None = None,
    num_splits: int | None = None,
    out: torch.Tensor | None = None,
    workspace: torch.Tensor | None = None,
    config: DecodeConfig | None = None,
) -> torch.Tensor:
    """Return attention of one query token of each sequence over its cached tokens.

    Args:
        query: [seqs, heads, dim] of fp16, bf16 or fp32; dim 64, 128 or 256.
        key_cache: [blocks, block_tokens, kv_heads, dim] of any strides but the last; block_tokens
            8 to 256, a power of two. What no sequence owns, and what lies beyond a sequence's
            context in its last block, may hold anything, NaN included.
        value_cache: like key_cache, strides too.
        block_tables: int32 [seqs, max_blocks]: the blocks of each sequence in order; entries
            beyond its context aren't read.
        context_lens: int32 [seqs]: tokens of each, its newest included; 0 gives zeros.
        scale: of logits; None: 1 / sqrt(dim).
        max_context_tokens: bound on context_lens; only the choice of num_splits rests on it.
            None: what the block tables can hold.
        num_splits: into how many parts each context is cut; None: as fills the chip.
        out: [seqs, heads, dim]; None: a new tensor.
        workspace: float32, `splitting.workspace_elements` long; None: a new tensor if needed.
        config: tile, warps and stages; None: by the bytes of a token.

    Raises:
        KernelInputError: wrong shape, dtype, device or number.
    """
    check_pair(key_cache, value_cache, query, ("key_cache", "value_cache"))
    _, block_tokens, kv_heads, dim = key_cache.shape
    out = check_query(query, kv_heads, out)
    seqs, heads, _ = query.shape
    check_block_tokens(block_tokens)
    check_block_span(key_cache)
    check_tables(block_tables, seqs, query.device)
    check_lengths(context_lens, seqs, query.device)
    if seqs == 0 or heads == 0:
        return out
    row_bytes = dim * query.element_size()
    config = config or decode_config(row_bytes)
    longest = max_context_tokens or block_tables.shape[1] * block_tokens
    splits = (
        num_splits
        if num_splits is not None
        else splits_for(config, out, kv_heads, longest, row_bytes)
    )
    parts = make_parts(out, splits, workspace)
    group = heads // kv_heads
    _paged_decode[(kv_heads, splits, seqs)](
        query,
        key_cache,
        value_cache,
        block_tables,
        context_lens,
        out,
        parts.sums,
        parts.stats,
        (dim**-0.5 if scale is None else scale) * LOG2_E,
        *query.stride()[:2],
        *key_cache.stride()[:3],
        block_tables.stride(0),
        *out.stride()[:2],
        GROUP=group,
        ROWS=max(16, triton.next_power_of_2(group)),
        DIM=dim,
        BLOCK=block_tokens,
        TILE=config.tile_tokens,
        SPLIT=splits > 1,
        num_warps=config.warps,
        num_stages=config.paged_stages,
    )
    merge_parts(parts, context_lens, out, config.tile_tokens)
    return out
