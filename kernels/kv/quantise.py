"""Quantising new keys and values on their way into the pages of a KV cache."""

import torch
import triton
import triton.language as tl

from kernels.checks import check, check_tensor
from kernels.dtypes import FLOATS
from kernels.kv.quantised import LARGEST_CODE, QuantisedKv, check_fp8, check_same_format

_ROWS = 16
"""Rows (a token's keys in one KV head) to a program."""


@triton.jit
def _rows_of(slots, tokens, KV_HEADS: tl.constexpr, ROWS: tl.constexpr):
    """Return each row's (token, KV head, row of the cache; negative: none)."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    token, head = row // KV_HEADS, row % KV_HEADS
    slot = tl.load(slots + token, mask=token < tokens, other=-1)
    return token, head, tl.where(slot >= 0, slot * KV_HEADS + head, -1)


@triton.jit
def _eight_bits(
    x,
    codes,
    scales,
    at,
    head,
    cached,
    scale_stride,
    DIM: tl.constexpr,
    LARGEST: tl.constexpr,
    INTEGER: tl.constexpr,
    PER_TOKEN: tl.constexpr,
):
    """Write the codes, and the scales if they are a token's, of rows [rows] at `at` in x."""
    dims, there = tl.arange(0, DIM)[None, :], cached >= 0
    values = tl.load(x + at[:, None] + dims, mask=there[:, None], other=0.0).to(tl.float32)
    if PER_TOKEN:
        scale = tl.div_rn(
            tl.max(tl.abs(values), axis=1), tl.full(cached.shape, LARGEST, tl.float32)
        )
        tl.store(scales + cached, scale, mask=there)
    else:
        scale = tl.load(scales + head * scale_stride)
    divisor = tl.where(scale > 0.0, scale, 1.0)[:, None]
    # A true division: its approximation could fall on the other side of a rounding.
    scaled = tl.div_rn(values, tl.broadcast_to(divisor, values.shape))
    scaled = tl.floor(scaled + 0.5) if INTEGER else scaled
    scaled = tl.minimum(tl.maximum(scaled, -LARGEST), LARGEST)
    to = codes + cached[:, None] * DIM + dims
    tl.store(to, scaled.to(codes.dtype.element_ty), mask=there[:, None])


@triton.jit
def _quantise_8bit(
    key,
    value,
    key_codes,
    value_codes,
    key_scales,
    value_scales,
    slots,
    tokens,
    key_token_stride,
    key_head_stride,
    value_token_stride,
    value_head_stride,
    scale_stride,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
    LARGEST: tl.constexpr,
    INTEGER: tl.constexpr,
    PER_TOKEN: tl.constexpr,
):
    token, head, cached = _rows_of(slots, tokens, KV_HEADS, ROWS)
    at = token * key_token_stride + head * key_head_stride
    _eight_bits(
        key, key_codes, key_scales, at, head, cached, scale_stride, DIM, LARGEST, INTEGER, PER_TOKEN
    )
    at = token * value_token_stride + head * value_head_stride
    _eight_bits(
        value,
        value_codes,
        value_scales,
        at,
        head,
        cached,
        scale_stride,
        DIM,
        LARGEST,
        INTEGER,
        PER_TOKEN,
    )


@triton.jit
def _group_codes(grouped, lowest, highest):
    """Return (codes, scale, lowest) of groups [rows, groups, elements], as fp16 holds them."""
    # What is stored divides, so that its own rounding does no harm. It can be zero.
    steps = tl.full(lowest.shape, 15.0, tl.float32)
    scale = tl.div_rn(highest - lowest, steps).to(tl.float16)
    base = lowest.to(tl.float16)
    wide = scale.to(tl.float32)
    divisor = tl.where(wide > 0.0, wide, 1.0)[:, :, None]
    above = grouped - base.to(tl.float32)[:, :, None]
    codes = tl.floor(tl.div_rn(above, tl.broadcast_to(divisor, above.shape)) + 0.5)
    return tl.minimum(tl.maximum(codes, 0.0), 15.0).to(tl.uint8), scale, base


@triton.jit
def _four_bits(x, codes, scales, at, cached, DIM: tl.constexpr, GROUP: tl.constexpr):
    """Write the codes and scales of rows [rows] at `at` in x."""
    HALF: tl.constexpr = DIM // 2
    # A group as long as dim reaches over both halves; its extremes are then taken together.
    WIDTH: tl.constexpr = GROUP if GROUP < HALF else HALF
    COUNT: tl.constexpr = HALF // WIDTH
    ROWS: tl.constexpr = cached.shape[0]
    there = (cached >= 0)[:, None]
    dims, group = tl.arange(0, HALF)[None, :], tl.arange(0, COUNT)[None, :]
    low = tl.load(x + at[:, None] + dims, mask=there, other=0.0).to(tl.float32)
    high = tl.load(x + at[:, None] + HALF + dims, mask=there, other=0.0).to(tl.float32)
    low, high = tl.reshape(low, (ROWS, COUNT, WIDTH)), tl.reshape(high, (ROWS, COUNT, WIDTH))
    low_least, low_most = tl.min(low, axis=2), tl.max(low, axis=2)
    high_least, high_most = tl.min(high, axis=2), tl.max(high, axis=2)
    if GROUP > HALF:
        low_least = tl.minimum(low_least, high_least)
        high_least = low_least
        low_most = tl.maximum(low_most, high_most)
        high_most = low_most
    low_codes, low_scale, low_base = _group_codes(low, low_least, low_most)
    high_codes, high_scale, high_base = _group_codes(high, high_least, high_most)
    packed = tl.reshape(low_codes | (high_codes << 4), (ROWS, HALF))
    tl.store(codes + cached[:, None] * HALF + dims, packed, mask=there)
    to = scales + cached[:, None] * (DIM // GROUP * 2) + group * 2
    tl.store(to, low_scale, mask=there)
    tl.store(to + 1, low_base, mask=there)
    if GROUP <= HALF:
        tl.store(to + COUNT * 2, high_scale, mask=there)
        tl.store(to + COUNT * 2 + 1, high_base, mask=there)


@triton.jit
def _quantise_4bit(
    key,
    value,
    key_codes,
    value_codes,
    key_scales,
    value_scales,
    slots,
    tokens,
    key_token_stride,
    key_head_stride,
    value_token_stride,
    value_head_stride,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
    GROUP: tl.constexpr,
):
    token, head, cached = _rows_of(slots, tokens, KV_HEADS, ROWS)
    at = token * key_token_stride + head * key_head_stride
    _four_bits(key, key_codes, key_scales, at, cached, DIM, GROUP)
    at = token * value_token_stride + head * value_head_stride
    _four_bits(value, value_codes, value_scales, at, cached, DIM, GROUP)


def quantise_kv(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: QuantisedKv,
    value_cache: QuantisedKv,
    slots: torch.Tensor,
) -> None:
    """Quantise each token's keys and values and write them into its slot of a paged cache.

    Args:
        key: [tokens, kv_heads, dim] of fp16, bf16 or fp32, of any strides but the last.
        value: like key; its strides may differ.
        key_cache: codes and scales of keys; scales of a tensor or a head are read, others written.
        value_cache: of values, of the same format and shape.
        slots: int64 [tokens], as for `write_kv`.

    Raises:
        KernelInputError: wrong shape, dtype or device.
    """
    check_tensor("key", key, ("tokens", "kv_heads", "dim"), FLOATS)
    tokens, kv_heads, dim = key.shape
    check_tensor("value", value, (tokens, kv_heads, dim), (key.dtype,), key.device)
    check_tensor("slots", slots, (tokens,), (torch.int64,), key.device)
    check_same_format(key_cache, value_cache)
    check_fp8(key_cache)
    found = (key_cache.codes.shape[2], key_cache.dim)
    check(found == (kv_heads, dim), f"key is {kv_heads} heads of {dim}; the cache {found}")
    check(
        dim in (64, 128, 256) and key.device == key_cache.codes.device,
        f"dim is {dim} on {key.device}; 64, 128 or 256 on the cache's device is needed",
    )
    if key.numel() == 0:
        return
    grid = (triton.cdiv(tokens * kv_heads, _ROWS),)
    codes, scales = (key_cache.codes, value_cache.codes), (key_cache.scales, value_cache.scales)
    strides = (*key.stride()[:2], *value.stride()[:2])
    sizes = {"KV_HEADS": kv_heads, "DIM": dim, "ROWS": _ROWS}
    if key_cache.group is not None:
        _quantise_4bit[grid](
            key, value, *codes, *scales, slots, tokens, *strides, GROUP=key_cache.group, **sizes
        )
        return
    _quantise_8bit[grid](
        key,
        value,
        *codes,
        *scales,
        slots,
        tokens,
        *strides,
        key_cache.head_stride,
        LARGEST=LARGEST_CODE[key_cache.format],
        INTEGER=key_cache.format == "int8",
        PER_TOKEN=key_cache.granularity == "token",
        **sizes,
    )


SOURCES_8BIT = (_quantise_8bit, _eight_bits, _rows_of)
SOURCES_4BIT = (_quantise_4bit, _four_bits, _group_codes, _rows_of)
