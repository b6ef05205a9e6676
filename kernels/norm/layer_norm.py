"""LayerNorm over rows: y = (x - mean) / sqrt(variance + eps) · weight + bias."""

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
    row_sum,
    warps_of,
)
from kernels.reference import layer_norm as reference


@triton.jit
def _layer_norm(
    x,
    residual,
    weight,
    bias,
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
        mean = row_sum(values, HALF).to(tl.float32) / columns
        centred = tl.where(inside, values - mean, 0.0)
        scale = tl.rsqrt(row_squares(centred, HALF).to(tl.float32) / columns + eps)
        gain = tl.load(weight + lane, mask=inside, other=0.0).to(tl.float32)
        shift = tl.load(bias + lane, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + start + lane, centred * scale * gain + shift, mask=inside)
    else:
        sums = tl.zeros((), tl.float16 if HALF else tl.float32)
        for first in range(0, columns, BLOCK):
            at = first + lane
            sums += row_sum(load_sum(x, residual, summed, start + at, at < columns, ADD), HALF)
        mean = sums.to(tl.float32) / columns
        if ADD:
            # What this program's threads stored must be there when others of them read it.
            tl.debug_barrier()
        source = summed if ADD else x
        # Squares of what is centred, in a pass of their own: mean(x²) - mean² would cancel.
        squares = tl.zeros((), tl.float16 if HALF else tl.float32)
        for first in range(0, columns, BLOCK):
            at = first + lane
            values = tl.load(source + start + at, mask=at < columns, other=0.0).to(tl.float32)
            squares += row_squares(tl.where(at < columns, values - mean, 0.0), HALF)
        scale = tl.rsqrt(squares.to(tl.float32) / columns + eps)
        for first in range(0, columns, BLOCK):
            at = first + lane
            values = tl.load(source + start + at, mask=at < columns, other=0.0).to(tl.float32)
            gain = tl.load(weight + at, mask=at < columns, other=0.0).to(tl.float32)
            shift = tl.load(bias + at, mask=at < columns, other=0.0).to(tl.float32)
            tl.store(out + start + at, (values - mean) * scale * gain + shift, mask=at < columns)


def layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    *,
    eps: float = 1e-5,
    residual: torch.Tensor | None = None,
    accumulate: str = "float32",
    out: torch.Tensor | None = None,
    summed: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the normalised rows of x, or of x + residual.

    Args:
        x: [rows, columns], contiguous.
        weight: [columns], of x's dtype.
        bias: [columns], of x's dtype.
        residual: like x; the sum x + residual, rounded to x's dtype, replaces it.
        accumulate: format of sums, squares and their sum: "float32", or "float16", in which a
            square overflows where |x - mean| > 255.9 and the row comes out as the bias.
        out: where to write; None: a new tensor.
        summed: where to write the sum; None: over `residual`.

    Raises:
        KernelInputError: wrong shape, dtype, device or option.
    """
    check_rows(x, {"weight": weight, "bias": bias}, eps, accumulate)
    out, added, summed = beside(x, out, residual, summed)
    rows, columns = x.shape
    if rows and columns:
        block = block_of(columns)
        _layer_norm[(rows,)](
            x,
            added,
            weight,
            bias,
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


_NORM = Norm(
    layer_norm,
    reference,
    ("weight", "bias"),
    _layer_norm,
    (_layer_norm, load_sum, row_sum, row_squares),
)
LAYER_NORM = norm_kernel("layer_norm", _NORM, "float32")
LAYER_NORM_HALF = norm_kernel("layer_norm_float16_sums", _NORM, "float16")
