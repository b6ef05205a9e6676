"""Writing new keys and values into the pages of a KV cache."""

import torch
import triton
import triton.language as tl

from kernels.checks import check, check_tensor
from kernels.dtypes import FLOATS

_PROGRAM_ELEMENTS = 2048
"""Of keys that a program copies: enough to be worth starting one."""


@triton.jit
def _write_kv(
    key,
    value,
    key_cache,
    value_cache,
    slots,
    tokens,
    key_token_stride,
    key_head_stride,
    value_token_stride,
    value_head_stride,
    block_stride,
    block_token_stride,
    kv_head_stride,
    block_tokens,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    slot = tl.load(slots + token, mask=token < tokens, other=-1)
    column = tl.arange(0, COLUMNS)
    head, dim = column // DIM, column % DIM
    there = (slot >= 0)[:, None] & (column < KV_HEADS * DIM)[None, :]
    page = slot // block_tokens * block_stride + slot % block_tokens * block_token_stride
    to = page[:, None] + (head * kv_head_stride + dim)[None, :]
    key_at = token[:, None] * key_token_stride + (head * key_head_stride + dim)[None, :]
    tl.store(key_cache + to, tl.load(key + key_at, mask=there), mask=there)
    value_at = token[:, None] * value_token_stride + (head * value_head_stride + dim)[None, :]
    tl.store(value_cache + to, tl.load(value + value_at, mask=there), mask=there)


def write_kv(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slots: torch.Tensor,
) -> None:
    """Write each token's keys and values into its slot of a paged cache.

    Args:
        key: [tokens, kv_heads, dim] of fp16, bf16 or fp32, of any strides but the last.
        value: like key; its strides may differ.
        key_cache: [blocks, block_tokens, kv_heads, dim] of key's dtype.
        value_cache: like key_cache, strides too.
        slots: int64 [tokens]: block · block_tokens + offset; a token of a negative slot (padding)
            is skipped. No two tokens may have the same slot.

    Raises:
        KernelInputError: wrong shape, dtype or device.
    """
    check_tensor("key", key, ("tokens", "kv_heads", "dim"), FLOATS)
    tokens, kv_heads, dim = key.shape
    check_tensor("value", value, (tokens, kv_heads, dim), (key.dtype,), key.device)
    cache = ("blocks", "block_tokens", kv_heads, dim)
    check_tensor("key_cache", key_cache, cache, (key.dtype,), key.device)
    check_tensor("value_cache", value_cache, tuple(key_cache.shape), (key.dtype,), key.device)
    check(
        key_cache.stride() == value_cache.stride(),
        f"key_cache has strides {key_cache.stride()} and value_cache {value_cache.stride()}; "
        "they must be the same",
    )
    check_tensor("slots", slots, (tokens,), (torch.int64,), key.device)
    if key.numel() == 0:
        return
    rows, columns = write_tile(kv_heads, dim)
    _write_kv[(triton.cdiv(tokens, rows),)](
        key,
        value,
        key_cache,
        value_cache,
        slots,
        tokens,
        *key.stride()[:2],
        *value.stride()[:2],
        *key_cache.stride()[:3],
        key_cache.shape[1],
        KV_HEADS=kv_heads,
        DIM=dim,
        TOKENS=rows,
        COLUMNS=columns,
        num_warps=4,
    )


def write_tile(kv_heads: int, dim: int) -> tuple[int, int]:
    """Return (tokens, elements of each) that a program copies, both powers of two."""
    columns = triton.next_power_of_2(kv_heads * dim)
    return max(1, _PROGRAM_ELEMENTS // columns), columns
