"""Decode attention over a KV cache in which each sequence lies in one piece."""

import torch
import triton
import triton.language as tl

from kernels.attention.inputs import check_lengths, check_pair, check_query
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
    split_tokens,
    store_stats,
    store_sums,
)
from kernels.checks import check


@triton.jit
def _contiguous_decode(
    query,
    key,
    value,
    context_lens,
    out,
    sums,
    stats,
    scale,
    query_seq_stride,
    query_head_stride,
    seq_stride,
    token_stride,
    kv_head_stride,
    out_seq_stride,
    out_head_stride,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    SPLIT: tl.constexpr,
):
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
    base = seq * seq_stride + kv_head.to(tl.int64) * kv_head_stride
    for start in range(first, last, TILE):
        at_token = start + tokens
        seen = at_token < last
        cached = base + at_token.to(tl.int64)[:, None] * token_stride + dims[None, :]
        keys = tl.load(key + cached, mask=seen[:, None], other=0.0)
        values = tl.load(value + cached, mask=seen[:, None], other=0.0)
        top, total, summed = attend(queries, keys, values, seen[None, :], scale, top, total, summed)
    if SPLIT:
        splits = tl.num_programs(1)
        part = (seq * tl.num_programs(0) + kv_head) * GROUP * splits + split
        store_sums(sums, part, splits, summed, GROUP, DIM, 0)
        store_stats(stats, part, splits, top, total, GROUP)
    else:
        at, real = group_rows(seq, kv_head, out_seq_stride, out_head_stride, GROUP, ROWS, DIM)
        tl.store(out + at, normalised(total, summed).to(out.dtype.element_ty), mask=real)


def contiguous_decode(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
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
        key: [seqs, max_tokens, kv_heads, dim] of any strides but the last; what lies beyond a
            context may hold anything.
        value: like key, strides too.
        context_lens: int32 [seqs], at most max_tokens each; 0 gives zeros.
        scale: of logits; None: 1 / sqrt(dim).
        max_context_tokens: bound on context_lens; only the choice of num_splits rests on it.
            None: max_tokens.
        num_splits: into how many parts each context is cut; None: as fills the chip.
        out: [seqs, heads, dim]; None: a new tensor.
        workspace: float32, `splitting.workspace_elements` long; None: a new tensor if needed.
        config: tile, warps and tiles ahead; None: by the bytes of a token.

    Raises:
        KernelInputError: wrong shape, dtype, device or number.
    """
    check_pair(key, value, query, ("key", "value"))
    seqs, max_tokens, kv_heads, dim = key.shape
    out = check_query(query, kv_heads, out)
    heads = query.shape[1]
    check(query.shape[0] == seqs, f"query has {query.shape[0]} sequences and key {seqs}")
    check_lengths(context_lens, seqs, query.device)
    if seqs == 0 or heads == 0:
        return out
    row_bytes = dim * query.element_size()
    config = config or decode_config(row_bytes)
    splits = (
        num_splits
        if num_splits is not None
        else splits_for(config, out, kv_heads, max_context_tokens or max_tokens, row_bytes)
    )
    parts = make_parts(out, splits, workspace)
    group = heads // kv_heads
    _contiguous_decode[(kv_heads, splits, seqs)](
        query,
        key,
        value,
        context_lens,
        out,
        parts.sums,
        parts.stats,
        (dim**-0.5 if scale is None else scale) * LOG2_E,
        *query.stride()[:2],
        *key.stride()[:3],
        *out.stride()[:2],
        GROUP=group,
        ROWS=max(16, triton.next_power_of_2(group)),
        DIM=dim,
        TILE=config.tile_tokens,
        SPLIT=splits > 1,
        num_warps=config.warps,
        num_stages=config.stages,
    )
    merge_parts(parts, context_lens, out, config.tile_tokens)
    return out
