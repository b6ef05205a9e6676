"""C = A · B in fp16, bf16 or fp32, accumulated in fp32; k may be split between programs."""

from collections.abc import Callable
from functools import partial

import torch
import triton
import triton.language as tl

from kernels.checks import check, check_row_strides, check_tensor
from kernels.dtypes import FLOATS
from kernels.gemm.config import SHARED_BYTES, GemmConfig, config_for, configs_for, steps_of_k
from kernels.gemm.tiles import grouped_tile, store_tile, tile_product

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
        stride_bk,
        stride_bn,
        steps,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        EVEN_K,
        B_BY_ROWS,
        0,
    )
    store_tile(c, total, row, column, split, m, n, ldc, BLOCK_M, BLOCK_N)


@triton.jit
def sum_splits(parts, c, m, n, ldc, SPLIT_K: tl.constexpr, BLOCK: tl.constexpr):
    """Sum the parts [SPLIT_K, m, n] of a product into c."""
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
        a: [m, k] of fp16, bf16 or fp32, rows of any stride that `check_row_strides` takes.
        b: [k, n] of a's dtype; rows or columns contiguous (a weight [n, k] goes in as `w.T`).
        out: [m, n] of a's dtype, rows likewise; None: a new tensor.
        config: how to cut it; None: `config_for` this GPU.
        workspace: fp32, `workspace_elements` of them, used where the config splits k; None: new.

    Raises:
        KernelInputError: wrong shape, dtype or device.
    """
    check_tensor("a", a, ("m", "k"), FLOATS)
    check(b.dim() == 2, f"b has shape {list(b.shape)}; [{a.shape[1]}, n] is needed")
    (m, k), n = a.shape, b.shape[1]
    check_operand("b", b, (k, "n"), a)
    if out is None:
        out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    check_tensor("out", out, (m, n), (a.dtype,), a.device)
    check_row_strides(a=a, b=b, out=out)
    if m == 0 or n == 0:
        return out
    if k == 0:
        return out.zero_()
    config = config or default_config(a, b)
    with_parts(partial(_launch, a, b, config=config), out, config, workspace)
    return out


def with_parts(
    launch: Callable[[torch.Tensor], None],
    out: torch.Tensor,
    config: GemmConfig,
    workspace: torch.Tensor | None,
) -> None:
    """Launch a product into `out`; one that splits k into its parts, which are then summed."""
    m, n = out.shape
    if config.split_k == 1:
        launch(out)
        return
    parts = _parts(m, n, config, out.device, workspace)
    launch(parts[0])
    blocks = triton.cdiv(n, _SUM_BLOCK)
    sum_splits[(m, blocks)](parts, out, m, n, out.stride(0), config.split_k, _SUM_BLOCK)


def workspace_elements(m: int, n: int, config: GemmConfig) -> int:
    """Return the fp32 elements that a split product needs beside its output."""
    return config.split_k * m * n if config.split_k > 1 else 0


def default_config(a: torch.Tensor, b: torch.Tensor) -> GemmConfig:
    """Return `config_for` a · b on the GPU that they are on."""
    num_sms, shared_bytes = part_limits(a.device)
    size = a.element_size()
    table = configs_for(size, aligned=are_aligned(a, b))
    return config_for(
        a.shape[0],
        b.shape[1],
        a.shape[1],
        num_sms,
        table=table,
        element_bytes=size,
        shared_bytes=shared_bytes,
    )


def part_limits(device: torch.device) -> tuple[int, int]:
    """Return (multiprocessors, bytes of shared memory a block); the interpreter is one."""
    if device.type != "cuda":
        return 1, SHARED_BYTES
    part = triton.runtime.driver.active.utils.get_device_properties(device.index)
    return part["multiprocessor_count"], part["max_shared_mem"]


def are_aligned(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether whole vectors can be loaded: what Triton asks, all divisible by 16."""
    strides = [stride for stride in (*a.stride(), *b.stride()) if stride != 1]
    masked = [a.shape[1]] if b.stride(0) == 1 else b.shape
    addresses = (a.data_ptr(), b.data_ptr())
    return all(number % 16 == 0 for number in (*addresses, *strides, *masked))


def check_operand(
    name: str, b: torch.Tensor, shape: tuple[int | str, int | str], a: torch.Tensor
) -> None:
    """Check a second operand, whose rows or columns may be the contiguous ones."""
    if b.dim() == 2 and b.stride(0) == 1:
        b, shape, name = b.T, (shape[1], shape[0]), f"{name}.T"
    check_tensor(name, b, shape, (a.dtype,), a.device)


def _parts(
    m: int, n: int, config: GemmConfig, device: torch.device, workspace: torch.Tensor | None
) -> torch.Tensor:
    needed = workspace_elements(m, n, config)
    if workspace is None:
        workspace = torch.empty(needed, dtype=torch.float32, device=device)
    check_tensor("workspace", workspace, ("elements",), (torch.float32,), device)
    check(
        workspace.numel() >= needed,
        f"workspace has {workspace.numel()} elements; {needed} are needed",
    )
    return workspace[:needed].view(config.split_k, m, n)


def _launch(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, *, config: GemmConfig) -> None:
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


SOURCES = (_matmul, sum_splits, grouped_tile, tile_product, store_tile)
