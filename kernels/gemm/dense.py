"""C = A · B in fp16, bf16 or fp32, accumulated in fp32; k may be split between programs."""

import torch
import triton
import triton.language as tl

from kernels.checks import check, check_tensor
from kernels.dtypes import FLOATS
from kernels.gemm.config import SHARED_BYTES, GemmConfig, config_for, steps_of_k
from kernels.gemm.tiles import grouped_tile

_SUM_BLOCK = 1024


@triton.jit
def _matmul(
    a,
    b,
    c,
    m,
    n,
    k,
    lda,
    stride_bk,
    stride_bn,
    ldc,
    steps,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EVEN_K: tl.constexpr,
    B_BY_ROWS: tl.constexpr,
):
    tile_m, tile_n = grouped_tile(
        tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M
    )
    split = tl.program_id(1).to(tl.int64)
    # Starts of tiles in 64 bits: a matrix may have more than 2^31 elements. Within a tile 32 do.
    row = tile_m.to(tl.int64) * BLOCK_M
    column = tile_n.to(tl.int64) * BLOCK_N
    start = split * steps * BLOCK_K
    rows, columns, depth = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    last_m = tl.minimum(m - row - 1, BLOCK_M).to(tl.int32)
    last_n = tl.minimum(n - column - 1, BLOCK_N).to(tl.int32)
    in_m, in_n = (rows < m - row)[:, None], (columns < n - column)[None, :]
    # Beyond the edge the last row is read again: no predicate in the loop, and nothing stored
    # changes. Along contiguous columns that would break up wide loads, so there it is a mask.
    a_at = a + row * lda + start + tl.minimum(rows, last_m)[:, None] * lda + depth[None, :]
    b_at = b + start * stride_bk + column * stride_bn + depth[:, None] * stride_bk
    if B_BY_ROWS:
        b_at += columns[None, :] * stride_bn
    else:
        b_at += tl.minimum(columns, last_n)[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(steps):
        in_k = depth < k - start - step * BLOCK_K
        left = tl.load(a_at) if EVEN_K else tl.load(a_at, mask=in_k[None, :], other=0.0)
        if B_BY_ROWS:
            right_mask = in_n if EVEN_K else in_n & in_k[:, None]
            right = tl.load(b_at, mask=right_mask, other=0.0)
        elif EVEN_K:
            right = tl.load(b_at)
        else:
            right = tl.load(b_at, mask=in_k[:, None], other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
        a_at += BLOCK_K
        b_at += BLOCK_K * stride_bk
    # Each split has its own [m, n] of the workspace; unsplit, c is the result.
    c_at = c + split * m * ldc + row * ldc + column + rows[:, None] * ldc + columns[None, :]
    tl.store(c_at, total.to(c.dtype.element_ty), mask=in_m & in_n)


@triton.jit
def _sum_splits(parts, c, m, n, ldc, SPLIT_K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < n
    total = tl.zeros((BLOCK,), tl.float32)
    # In the order of k, never by atomics, so that two runs give the same bits.
    for split in tl.static_range(SPLIT_K):
        total += tl.load(parts + (split * m + row) * n + columns, mask=inside, other=0.0)
    tl.store(c + row * ldc + columns, total.to(c.dtype.element_ty), mask=inside)


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
    config: GemmConfig | None = None,
    workspace: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return a · b, accumulated in fp32.

    Args:
        a: [m, k] of fp16, bf16 or fp32, rows of any stride.
        b: [k, n] of a's dtype; rows or columns contiguous (a weight [n, k] goes in as `w.T`).
        out: [m, n] of a's dtype, rows of any stride; None: a new tensor.
        config: how to cut it; None: `config_for` this GPU.
        workspace: fp32, `workspace_elements` of them, used where the config splits k; None: new.

    Raises:
        KernelInputError: wrong shape, dtype or device.
    """
    check_tensor("a", a, ("m", "k"), FLOATS)
    (m, k), n = a.shape, b.shape[-1]
    check_operand("b", b, (k, "n"), a)
    if out is None:
        out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    check_tensor("out", out, (m, n), (a.dtype,), a.device)
    if m == 0 or n == 0:
        return out
    if k == 0:
        return out.zero_()
    config = config or default_config(a, b)
    if config.split_k == 1:
        _launch(a, b, out, config)
        return out
    parts = _parts(m, n, config, a, workspace)
    _launch(a, b, parts[0], config)
    blocks = triton.cdiv(n, _SUM_BLOCK)
    _sum_splits[(m, blocks)](parts, out, m, n, out.stride(0), config.split_k, _SUM_BLOCK)
    return out


def workspace_elements(m: int, n: int, config: GemmConfig) -> int:
    """Return the fp32 elements that a split product needs beside its output."""
    return config.split_k * m * n if config.split_k > 1 else 0


def default_config(a: torch.Tensor, b: torch.Tensor) -> GemmConfig:
    """Return `config_for` the GPU that `a` is on; in the interpreter, for one multiprocessor."""
    num_sms, shared_bytes = 1, SHARED_BYTES
    if a.device.type == "cuda":
        part = triton.runtime.driver.active.utils.get_device_properties(a.device.index or 0)
        num_sms, shared_bytes = part["multiprocessor_count"], part["max_shared_mem"]
    return config_for(
        a.shape[0],
        b.shape[1],
        a.shape[1],
        num_sms,
        element_bytes=a.element_size(),
        shared_bytes=shared_bytes,
        aligned=is_aligned(a) and is_aligned(b),
    )


def is_aligned(operand: torch.Tensor) -> bool:
    """Return whether every row (or column) begins at a multiple of 16 elements, as Triton asks."""
    strides = [stride for stride in operand.stride() if stride != 1]
    return operand.data_ptr() % 16 == 0 and all(stride % 16 == 0 for stride in strides)


def check_operand(
    name: str, b: torch.Tensor, shape: tuple[int | str, int | str], a: torch.Tensor
) -> None:
    """Check a second operand, whose rows or columns may be the contiguous ones."""
    if b.dim() == 2 and b.stride(0) == 1:
        b, shape, name = b.T, (shape[1], shape[0]), f"{name}.T"
    check_tensor(name, b, shape, (a.dtype,), a.device)


def _parts(
    m: int, n: int, config: GemmConfig, a: torch.Tensor, workspace: torch.Tensor | None
) -> torch.Tensor:
    needed = workspace_elements(m, n, config)
    if workspace is None:
        workspace = torch.empty(needed, dtype=torch.float32, device=a.device)
    check_tensor("workspace", workspace, ("elements",), (torch.float32,), a.device)
    check(
        workspace.numel() >= needed,
        f"workspace has {workspace.numel()} elements; {needed} are needed",
    )
    return workspace[:needed].view(config.split_k, m, n)


def _launch(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, config: GemmConfig) -> None:
    (m, k), n = a.shape, b.shape[1]
    _matmul[(config.tiles(m, n), config.split_k)](
        a,
        b,
        c,
        m,
        n,
        k,
        a.stride(0),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        steps_of_k(config, k),
        BLOCK_M=config.block_m,
        BLOCK_N=config.block_n,
        BLOCK_K=config.block_k,
        GROUP_M=config.group_m,
        EVEN_K=k % (config.block_k * config.split_k) == 0,
        B_BY_ROWS=b.stride(0) != 1,
        num_warps=config.warps,
        num_stages=config.stages,
    )


SOURCES = (_matmul, _sum_splits, grouped_tile)
