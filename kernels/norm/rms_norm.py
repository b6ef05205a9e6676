"""RMSNorm over rows: y = x / sqrt(mean(x²) + eps) · weight, x with a residual added or without."""

import torch
import triton
import triton.language as tl

from kernels.norm.cases import Norm, norm_kernel
from kernels.norm.rows import (
    ACCUMULATE,
    WHOLE_COLUMNS,
    beside,
    block_of,
    check_rows,
    load_sum,
    row_squares,
    warps_of,
)
from kernels.reference import rms_norm as reference


@triton.jit
def _rms_norm(
    x,
    residual,
    weight,
    summed,
    out,
    columns,
    eps,
    BLOCK: tl.constexpr,
    WHOLE: tl.constexpr,
    ADD: tl.constexpr,
    HALF: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * columns
    lane = tl.arange(0, BLOCK)
    if WHOLE:
        inside = lane < columns
        values = load_sum(x, residual, summed, start + lane, inside, ADD)
        squares = row_squares(values, HALF)
        scale = tl.rsqrt(squares.to(tl.float32) / columns + eps)
        gain = tl.load(weight + lane, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + start + lane, values * scale * gain, mask=inside)
    else:
        squares = tl.zeros((), tl.float16 if HALF else tl.float32)
        for first in range(0, columns, BLOCK):
            at = first + lane
            values = load_sum(x, residual, summed, start + at, at < columns, ADD)
            squares += row_squares(values, HALF)
        scale = tl.rsqrt(squares.to(tl.float32) / columns + eps)
        if ADD:
            # What this program's threads stored must be there when others of them read it.
            tl.debug_barrier()
        source = summed if ADD else x
        for first in range(0, columns, BLOCK):
            at = first + lane
            values = tl.load(source + start + at, mask=at < columns, other=0.0).to(tl.float32)
            gain = tl.load(weight + at, mask=at < columns, other=0.0).to(tl.float32)
            tl.store(out + start + at, values * scale * gain, mask=at < columns)


def rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    *,
    eps: float = 1e-6,
    residual: torch.Tensor | None = None,
    accumulate: str = "float32",
    out: torch.Tensor | None = None,
    summed: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the normalised rows of x, or of x + residual.

    Args:
        x: [rows, columns], contiguous.
        weight: [columns], of x's dtype.
        residual: like x; the sum x + residual, rounded to x's dtype, replaces it.
        accumulate: format of squares and their sum: "float32", or "float16", in which a square
            overflows beyond |x| = 255.9 and the row comes out as zeros.
        out: where to write; None: a new tensor.
        summed: where to write the sum; None: over `residual`.

    Raises:
        KernelInputError: wrong shape, dtype, device or option.
    """
    check_rows(x, {"weight": weight}, eps, accumulate)
    out, added, summed = beside(x, out, residual, summed)
    rows, columns = x.shape
    if rows and columns:
        block = block_of(columns)
        _rms_norm[(rows,)](
            x,
            added,
            weight,
            summed,
            out,
            columns,
            eps,
            BLOCK=block,
            WHOLE=columns <= WHOLE_COLUMNS,
            ADD=residual is not None,
            HALF=ACCUMULATE[accumulate],
            num_warps=warps_of(block),
        )
    return out


_NORM = Norm(rms_norm, reference, ("weight",), _rms_norm, (_rms_norm, load_sum, row_squares))
RMS_NORM = norm_kernel("rms_norm", _NORM, "float32")
RMS_NORM_HALF = norm_kernel("rms_norm_float16_sums", _NORM, "float16")
