"""What both norms share: the row they read, how it is summed, and the checks of their arguments."""

import torch
import triton
import triton.language as tl

from kernels.checks import check, check_tensor
from kernels.dtypes import FLOATS

ACCUMULATE = {"float32": False, "float16": True}
"""Formats of squares and sums, and whether the kernels round to half precision."""
WHOLE_COLUMNS = 8192
"""Up to so many columns a row stays in registers; wider rows are read again from the L2."""
LOOP_BLOCK = 4096


@triton.jit
def load_sum(x, residual, summed, at, inside, ADD: tl.constexpr):
    """Return x (+ residual, stored rounded to x's dtype) in fp32."""
    values = tl.load(x + at, mask=inside, other=0.0)
    if ADD:
        added = values.to(tl.float32) + tl.load(residual + at, mask=inside, other=0.0)
        values = added.to(x.dtype.element_ty)
        tl.store(summed + at, values, mask=inside)
    return values.to(tl.float32)


@triton.jit
def row_sum(values, HALF: tl.constexpr):
    """Return the sum of a block: in fp32, or rounded to fp16 at each addition."""
    return tl.sum(values.to(tl.float16 if HALF else tl.float32), axis=0)


@triton.jit
def row_squares(values, HALF: tl.constexpr):
    """Return the sum of squares of a block. In fp16 a square overflows beyond 255.9."""
    rounded = values.to(tl.float16 if HALF else tl.float32)
    return tl.sum(rounded * rounded, axis=0)


def check_rows(
    x: torch.Tensor, parameters: dict[str, torch.Tensor], eps: float, accumulate: str
) -> None:
    """Check a norm's input, its parameters [columns] and its options."""
    check_tensor("x", x, ("rows", "columns"), FLOATS)
    check(x.is_contiguous(), "x is not contiguous; rows must follow each other")
    for name, tensor in parameters.items():
        check_tensor(name, tensor, (x.shape[1],), (x.dtype,), x.device)
    check(eps >= 0, f"eps is {eps}; it must not be negative")
    known = ", ".join(ACCUMULATE)
    check(accumulate in ACCUMULATE, f"accumulate is {accumulate!r}; known are {known}")


def beside(
    x: torch.Tensor,
    out: torch.Tensor | None,
    residual: torch.Tensor | None,
    summed: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return what lies beside x, checked: the output, what is added, where the sum goes.

    Without a residual the last two are x itself, which the kernels then neither add nor write.
    """
    out = torch.empty_like(x) if out is None else out
    added = x if residual is None else residual
    summed = added if summed is None else summed
    for name, tensor in {"out": out, "residual": added, "summed": summed}.items():
        check_tensor(name, tensor, tuple(x.shape), (x.dtype,), x.device)
        check(tensor.is_contiguous(), f"{name} is not contiguous; rows must follow each other")
    return out, added, summed


def block_of(columns: int) -> int:
    """Return the columns that a program takes at once."""
    return triton.next_power_of_2(columns) if columns <= WHOLE_COLUMNS else LOOP_BLOCK


def warps_of(block: int) -> int:
    """Return the warps of a program."""
    return max(1, min(16, block // 256))
