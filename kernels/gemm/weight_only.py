"""C = A · W with W in int8 (a scale a column) or int4 (a scale each group of k and column)."""

from functools import partial

import torch
import triton
import triton.language as tl

from kernels.checks import check, check_row_strides, check_tensor
from kernels.gemm.config import GemmConfig, config_for, steps_of_k
from kernels.gemm.dense import part_limits, sum_splits, with_parts
from kernels.gemm.quantised_weight import check_bits
from kernels.gemm.tiles import grouped_tile, store_tile

_ACTIVATIONS = (torch.float16, torch.bfloat16)


@triton.jit
def _matmul_int8(
    a,
    codes,
    scales,
    c,
    m,
    n,
    k,
    lda,
    ldc,
    steps,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    tile_m, tile_n = grouped_tile(
        tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M
    )
    split = tl.program_id(1).to(tl.int64)
    row, column = tile_m.to(tl.int64) * BLOCK_M, tile_n.to(tl.int64) * BLOCK_N
    start = split * steps * BLOCK_K
    rows, columns, depth = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    last_m = tl.minimum(m - row - 1, BLOCK_M).to(tl.int32)
    in_n = columns < n - column
    a_at = a + row * lda + start + tl.minimum(rows, last_m)[:, None] * lda + depth[None, :]
    w_at = codes + start * n + column + depth[:, None] * n + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(steps):
        in_k = depth < k - start - step * BLOCK_K
        left = tl.load(a_at) if EVEN_K else tl.load(a_at, mask=in_k[None, :], other=0.0)
        in_w = in_n[None, :] if EVEN_K else in_n[None, :] & in_k[:, None]
        # Codes are exact in 16 bits; scales are applied once, to the sum in fp32.
        right = tl.load(w_at, mask=in_w, other=0).to(a.dtype.element_ty)
        total = tl.dot(left, right, total)
        a_at += BLOCK_K
        w_at += BLOCK_K * n
    total *= tl.load(scales + column + columns, mask=in_n, other=0.0).to(tl.float32)[None, :]
    store_tile(c, total, row, column, split, m, n, ldc, BLOCK_M, BLOCK_N)


@triton.jit
def _matmul_int4(
    a,
    codes,
    scales,
    c,
    m,
    n,
    k,
    lda,
    ldc,
    steps,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    GROUP: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tile_m, tile_n = grouped_tile(
        tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M
    )
    split = tl.program_id(1)
    row, column = tile_m.to(tl.int64) * BLOCK_M, tile_n.to(tl.int64) * BLOCK_N
    first = split * steps
    rows, columns, depth = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, GROUP // 2)
    last_m = tl.minimum(m - row - 1, BLOCK_M).to(tl.int32)
    in_n = columns < n - column
    a_at = a + row * lda + tl.minimum(rows, last_m)[:, None] * lda + depth[None, :] + first * GROUP
    begin = first.to(tl.int64) * (GROUP // 2) * n
    w_at = codes + begin + column + depth[:, None] * n + columns[None, :]
    s_at = scales + first.to(tl.int64) * n + column + columns
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # A step is a group: its low nibbles are its first half of k, its high ones the second.
    for _group in range(first, tl.minimum(first + steps, k // GROUP)):
        packed = tl.load(w_at, mask=in_n[None, :], other=0)
        low = ((packed & 15).to(tl.int8) - 8).to(a.dtype.element_ty)
        high = ((packed >> 4).to(tl.int8) - 8).to(a.dtype.element_ty)
        part = tl.dot(tl.load(a_at), low)
        part = tl.dot(tl.load(a_at + GROUP // 2), high, part)
        total += part * tl.load(s_at, mask=in_n, other=0.0).to(tl.float32)[None, :]
        a_at += GROUP
        w_at += (GROUP // 2) * n
        s_at += n
    store_tile(c, total, row, column, split.to(tl.int64), m, n, ldc, BLOCK_M, BLOCK_N)


INT8_CONFIGS: tuple[GemmConfig, ...] = (
    GemmConfig(16, 64, 128, 8, 4, 4),
    GemmConfig(16, 128, 64, 8, 4, 4),
    GemmConfig(64, 64, 64, 8, 4, 3),
    GemmConfig(128, 128, 64, 8, 8, 3),
)
INT4_CONFIGS: tuple[GemmConfig, ...] = (
    GemmConfig(16, 64, 64, 8, 4, 3),
    GemmConfig(16, 128, 64, 8, 4, 3),
    GemmConfig(64, 64, 64, 8, 4, 3),
    GemmConfig(64, 128, 64, 8, 8, 3),
)
"""A step is a group, whatever block_k says; it only ranks."""


def matmul_weight_only(
    a: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    bits: int,
    group: int | None = None,
    out: torch.Tensor | None = None,
    config: GemmConfig | None = None,
    workspace: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return a · W, W as `kernels.gemm.quantised_weight.quantise_weight` packs it.

    Args:
        a: [m, k] of fp16 or bf16, rows of any stride.
        packed: int8 [k, n] at 8 bits; uint8 [k / 2, n] at 4.
        scales: fp16 [n] at 8 bits; [k / group, n] at 4.
        bits: 8 or 4.
        group: rows of W to a scale at 4 bits (32, 64 or 128, dividing k); None at 8.
        out: [m, n] of a's dtype; None: a new tensor.
        config: how to cut it; None: the fastest by a plain model.
        workspace: as in `kernels.gemm.dense.matmul`.

    Raises:
        KernelInputError: wrong shape, dtype or device.
    """
    check_tensor("a", a, ("m", "k"), _ACTIVATIONS)
    check(packed.dim() == 2, f"packed has shape {list(packed.shape)}; two axes are needed")
    (m, k), n = a.shape, packed.shape[1]
    check_bits(bits, group, k)
    kind, packed_rows = (torch.int8, k) if group is None else (torch.uint8, k // 2)
    check_tensor("packed", packed, (packed_rows, n), (kind,), a.device)
    scales_shape = (n,) if group is None else (k // group, n)
    check_tensor("scales", scales, scales_shape, (torch.float16,), a.device)
    check(packed.is_contiguous() and scales.is_contiguous(), "packed or scales is not contiguous")
    if out is None:
        out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    check_tensor("out", out, (m, n), (a.dtype,), a.device)
    check_row_strides(a=a, packed=packed, out=out)
    if m == 0 or n == 0:
        return out
    if k == 0:
        return out.zero_()
    config = config or weight_only_config(a, n, bits=bits)
    launch = partial(_launch, a, packed, scales, config=config, group=group)
    with_parts(launch, out, config, workspace)
    return out


def weight_only_config(a: torch.Tensor, n: int, *, bits: int) -> GemmConfig:
    """Return the configuration to take where none has been timed."""
    num_sms, shared_bytes = part_limits(a.device)
    table = INT8_CONFIGS if bits == 8 else INT4_CONFIGS
    return config_for(a.shape[0], n, a.shape[1], num_sms, table=table, shared_bytes=shared_bytes)


def _launch(
    a: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    c: torch.Tensor,
    *,
    config: GemmConfig,
    group: int | None,
) -> None:
    (m, k), n = a.shape, packed.shape[1]
    grid, strides = (config.tiles(m, n), config.split_k), (a.stride(0), c.stride(0))
    tile = {"BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "GROUP_M": config.group_m}
    run = {"num_warps": config.warps, "num_stages": config.stages}
    if group is None:
        even = k % (config.block_k * config.split_k) == 0
        steps, tile = steps_of_k(config, k), {**tile, "BLOCK_K": config.block_k, "EVEN_K": even}
        _matmul_int8[grid](a, packed, scales, c, m, n, k, *strides, steps, **tile, **run)
    else:
        steps = -(-(k // group) // config.split_k)
        _matmul_int4[grid](
            a, packed, scales, c, m, n, k, *strides, steps, GROUP=group, **tile, **run
        )


INT8_SOURCES = (_matmul_int8, sum_splits, grouped_tile, store_tile)
INT4_SOURCES = (_matmul_int4, sum_splits, grouped_tile, store_tile)
