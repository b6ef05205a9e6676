"""C = (A · B) · scales with A and B in fp8 e4m3, accumulated in fp32."""

from functools import partial

import torch
import triton
import triton.language as tl

from kernels.checks import check, check_row_strides, check_tensor
from kernels.gemm.config import GemmConfig, steps_of_k
from kernels.gemm.dense import default_config, sum_splits, with_parts
from kernels.gemm.tiles import grouped_tile, store_tile, tile_product

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0
"""Largest finite e4m3 (OCP 8-bit floating point specification)."""
PROMOTE_K = 128
"""Elements of k after which Hopper's partial sums, kept with fewer bits, go to full fp32."""


@triton.jit
def _matmul_fp8(
    a,
    b,
    c,
    scale_a,
    scale_b,
    m,
    n,
    k,
    lda,
    ldb,
    ldc,
    steps,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EVEN_K: tl.constexpr,
    BY_ROW: tl.constexpr,
    BY_COLUMN: tl.constexpr,
    IMPRECISE: tl.constexpr,
):
    tile_m, tile_n = grouped_tile(
        tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M
    )
    split = tl.program_id(1).to(tl.int64)
    row, column = tile_m.to(tl.int64) * BLOCK_M, tile_n.to(tl.int64) * BLOCK_N
    start = split * steps * BLOCK_K
    total = tile_product(
        a,
        b,
        row,
        column,
        start,
        m,
        n,
        k,
        lda,
        1,
        ldb,
        steps,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        EVEN_K,
        False,
        IMPRECISE,
    )
    if BY_ROW:
        rows = row + tl.arange(0, BLOCK_M)
        total *= tl.load(scale_a + rows, mask=rows < m, other=0.0)[:, None]
    else:
        total *= tl.load(scale_a)
    if BY_COLUMN:
        columns = column + tl.arange(0, BLOCK_N)
        total *= tl.load(scale_b + columns, mask=columns < n, other=0.0)[None, :]
    else:
        total *= tl.load(scale_b)
    store_tile(c, total, row, column, split, m, n, ldc, BLOCK_M, BLOCK_N)


def matmul_fp8(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    *,
    out: torch.Tensor,
    config: GemmConfig | None = None,
    workspace: torch.Tensor | None = None,
    two_level: bool = True,
) -> torch.Tensor:
    """Write (a · scale_a) · (b · scale_b) into `out` and return it.

    Args:
        a: [m, k] e4m3, rows of any stride.
        b: [k, n] e4m3, its columns contiguous: a weight [n, k] as `w.T`, as Hopper's fp8
            instructions ask.
        scale_a: fp32 [1] for the tensor, or [m] for its rows.
        scale_b: fp32 [1] for the tensor, or [n] for its columns.
        out: [m, n] of fp16 or bf16.
        config: how to cut it; None: `config_for` this GPU.
        workspace: as in `kernels.gemm.dense.matmul`.
        two_level: add partial sums to fp32 each 128 of k. Hopper keeps fewer bits inside; without
            this long sums lose them (physics: needle retrieval at 128k 13 % against 89 %).

    Raises:
        KernelInputError: wrong shape, dtype or device.
    """
    check_tensor("a", a, ("m", "k"), (FP8,))
    check(b.dim() == 2, f"b has shape {list(b.shape)}; [{a.shape[1]}, n] is needed")
    (m, k), n = a.shape, b.shape[1]
    check_tensor("b.T", b.T, (n, k), (FP8,), a.device)
    _check_scale("scale_a", scale_a, m, a.device)
    _check_scale("scale_b", scale_b, n, a.device)
    check_tensor("out", out, (m, n), (torch.float16, torch.bfloat16), a.device)
    check_row_strides(a=a, b=b, out=out)
    if m == 0 or n == 0:
        return out
    if k == 0:
        return out.zero_()
    config = config or default_config(a, b)
    launch = partial(_launch, a, b, scale_a, scale_b, config=config, two_level=two_level)
    with_parts(launch, out, config, workspace)
    return out


def quantise_fp8(
    values: torch.Tensor, *, axis: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (e4m3 codes of values' shape, fp32 scales) with values ≈ codes · scales.

    Args:
        values: [rows, columns] of any float type.
        axis: None: one scale for the tensor; 0: one a row; 1: one a column.
    """
    check_tensor("values", values.contiguous(), ("rows", "columns"), (values.dtype,))
    check(axis in (None, 0, 1), f"axis is {axis}; None, 0 or 1 is needed")
    wide = values.float()
    if axis is None:
        largest = wide.abs().amax().reshape(1, 1)
    else:
        largest = wide.abs().amax(dim=1 - axis, keepdim=True)
    # All zero: any scale does, and 1 keeps the codes zero.
    scale = torch.where(largest > 0, largest / FP8_MAX, torch.ones_like(largest))
    codes = (wide / scale).clamp(-FP8_MAX, FP8_MAX).to(FP8)
    return codes, scale.flatten()


def _check_scale(name: str, scale: torch.Tensor, length: int, device: torch.device) -> None:
    wanted = 1 if scale.numel() == 1 else length
    check_tensor(name, scale, (wanted,), (torch.float32,), device)


def _launch(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    c: torch.Tensor,
    *,
    config: GemmConfig,
    two_level: bool,
) -> None:
    (m, k), n = a.shape, b.shape[1]
    _matmul_fp8[(config.tiles(m, n), config.split_k)](
        a,
        b,
        c,
        scale_a,
        scale_b,
        m,
        n,
        k,
        a.stride(0),
        b.stride(1),
        c.stride(0),
        steps_of_k(config, k),
        BLOCK_M=config.block_m,
        BLOCK_N=config.block_n,
        BLOCK_K=config.block_k,
        GROUP_M=config.group_m,
        EVEN_K=k % (config.block_k * config.split_k) == 0,
        BY_ROW=scale_a.numel() > 1,
        BY_COLUMN=scale_b.numel() > 1,
        IMPRECISE=min(PROMOTE_K, config.block_k) if two_level else None,
        num_warps=config.warps,
        num_stages=config.stages,
    )


SOURCES = (_matmul_fp8, sum_splits, grouped_tile, tile_product, store_tile)
