"""Checks that the attention kernels share."""

import torch

from kernels.checks import check, check_tensor
from kernels.dtypes import FLOATS

HEAD_DIMS = (64, 128, 256)
BLOCK_TOKENS = (8, 16, 32, 64, 128, 256)
MAX_GROUP = 64
"""Most query heads to a KV head: they are the rows of one tile."""
MAX_SEQS = 65_535
"""Most programs along the third axis of a grid (CUDA C++ programming guide)."""


def check_query(query: torch.Tensor, kv_heads: int, out: torch.Tensor | None) -> torch.Tensor:
    """Check queries [rows, heads, dim] against a cache's KV heads; return where to write."""
    check_tensor("query", query, ("rows", "heads", "dim"), FLOATS)
    rows, heads, dim = query.shape
    check(dim in HEAD_DIMS, f"dim is {dim}; 64, 128 or 256 is needed")
    check(
        kv_heads > 0 and heads % kv_heads == 0 and heads // kv_heads <= MAX_GROUP,
        f"query has {heads} heads for {kv_heads} KV heads; 1 to {MAX_GROUP} to each are needed",
    )
    if out is None:
        out = torch.empty((rows, heads, dim), dtype=query.dtype, device=query.device)
    check_tensor("out", out, (rows, heads, dim), (query.dtype,), query.device)
    return out


def check_pair(
    key: torch.Tensor, value: torch.Tensor, like: torch.Tensor, names: tuple[str, str]
) -> None:
    """Check keys and values [any, tokens, kv_heads, dim] against queries, and that they match."""
    dim = like.shape[-1]
    check_tensor(names[0], key, ("rows", "tokens", "kv_heads", dim), (like.dtype,), like.device)
    check_tensor(names[1], value, tuple(key.shape), (like.dtype,), like.device)
    check(
        key.stride() == value.stride(),
        f"{names[0]} has strides {key.stride()} and {names[1]} {value.stride()}; "
        "they must be the same",
    )


def check_block_span(cache: torch.Tensor) -> None:
    """Check that offsets within one block of a cache [blocks, tokens, ...] fit 32 bits."""
    span = (cache.shape[1] - 1) * cache.stride(1)
    check(span < 2**31, f"a block's tokens lie {span} elements apart; less than 2^31 is needed")


def check_block_tokens(block_tokens: int) -> None:
    """Check a cache's tokens to a block."""
    known = ", ".join(map(str, BLOCK_TOKENS))
    check(block_tokens in BLOCK_TOKENS, f"blocks have {block_tokens} tokens; one of {known}")


def check_tables(block_tables: torch.Tensor, seqs: int, device: torch.device) -> None:
    """Check block tables, int32 [seqs, max_blocks]."""
    check_tensor("block_tables", block_tables, (seqs, "max_blocks"), (torch.int32,), device)


def check_lengths(context_lens: torch.Tensor, seqs: int, device: torch.device) -> None:
    """Check context lengths, int32 [seqs]."""
    check_tensor("context_lens", context_lens, (seqs,), (torch.int32,), device)
    check(seqs <= MAX_SEQS, f"there are {seqs} sequences; at most {MAX_SEQS} go in one launch")
