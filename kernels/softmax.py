"""Softmax over rows, with a clamp and with counters of what half precision does to it."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.checks import check, check_tensor
from kernels.dtypes import FLOATS

ACCUMULATE = {"float32": False, "float16": True}
CLAMP_AT = {"scores": False, "exponents": True}
COUNTS = ("clamped", "nonfinite", "overflowed", "flushed")
"""Columns of `Saturation.counts`."""
_MAX_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class Saturation:
    """What the kernel counts of each row, written whole at each launch.

    Attributes:
        counts: int32 [rows, 4], by `COUNTS`: scores that the clamp changed; inputs that are NaN or
            infinite; finite inputs whose exponential is infinite; finite inputs whose exponential
            is zero.
        flushed_mass: fp32 [rows], the share of the row's probability that those zeros had.
    """

    counts: torch.Tensor
    flushed_mass: torch.Tensor

    @classmethod
    def of_rows(cls, rows: int, device: torch.device) -> "Saturation":
        """Return counters for so many rows, holding nothing yet."""
        counts = torch.zeros(rows, len(COUNTS), dtype=torch.int32, device=device)
        return cls(counts, torch.zeros(rows, device=device))

    def totals(self) -> dict[str, int]:
        """Return the sum of each counter; waits for the GPU."""
        sums = self.counts.sum(dim=0, dtype=torch.int64).tolist()
        return dict(zip(COUNTS, sums, strict=True))


@triton.jit
def _scores(x, at, inside, clamp, EARLY: tl.constexpr):
    """Return (scores in fp32, clamped or not; the inputs). Beyond the row: -infinity."""
    inputs = tl.load(x + at, mask=inside, other=float("-inf")).to(tl.float32)
    scores = inputs
    if EARLY:
        # Not minimum and maximum: those would turn NaN into the clamp.
        scores = tl.where(inside & (scores > clamp), clamp, scores)
        scores = tl.where(inside & (scores < -clamp), -clamp, scores)
    return scores, inputs


@triton.jit
def _exponentials(
    scores, largest, clamp, LATE: tl.constexpr, SUBTRACT: tl.constexpr, HALF: tl.constexpr
):
    """Return (exponentials in fp32, rounded to fp16 or not; exponents before a late clamp)."""
    kind: tl.constexpr = tl.float16 if HALF else tl.float32
    exponents = scores.to(kind)
    if SUBTRACT:
        exponents -= largest.to(kind)
    exponents = exponents.to(tl.float32)
    bounded = tl.where(exponents > clamp, clamp, exponents) if LATE else exponents
    return tl.exp(bounded).to(kind).to(tl.float32), exponents


@triton.jit
def _count(condition):
    return tl.sum(condition.to(tl.int32), axis=0)


@triton.jit
def _softmax(
    x,
    out,
    counts,
    flushed_mass,
    columns,
    clamp,
    BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
    LATE: tl.constexpr,
    SUBTRACT: tl.constexpr,
    HALF: tl.constexpr,
    COUNT: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    start, lane = row * columns, tl.arange(0, BLOCK)
    largest = tl.full((), float("-inf"), tl.float32)
    if SUBTRACT or COUNT:
        for first in range(0, columns, BLOCK):
            at = first + lane
            scores, _ = _scores(x, start + at, at < columns, clamp, EARLY)
            largest = tl.maximum(largest, tl.max(scores, axis=0))
    total = tl.zeros((), tl.float16 if HALF else tl.float32)
    clamped, nonfinite = tl.zeros((), tl.int32), tl.zeros((), tl.int32)
    overflowed, flushed = tl.zeros((), tl.int32), tl.zeros((), tl.int32)
    mass, lost = tl.zeros((), tl.float32), tl.zeros((), tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + lane
        inside = at < columns
        scores, inputs = _scores(x, start + at, inside, clamp, EARLY)
        values, exponents = _exponentials(scores, largest, clamp, LATE, SUBTRACT, HALF)
        values = tl.where(inside, values, 0.0)
        total += tl.sum(values.to(total.dtype), axis=0)
        if COUNT:
            finite = inside & (tl.abs(inputs) < float("inf"))
            zero = finite & (values == 0.0)
            # What the zeros weigh, had exponentials been kept in fp32.
            exact = tl.where(finite, tl.exp(scores - largest), 0.0)
            mass += tl.sum(exact, axis=0)
            lost += tl.sum(tl.where(zero, exact, 0.0), axis=0)
            nonfinite += _count(inside & ~finite)
            overflowed += _count(finite & ~(tl.abs(values) < float("inf")))
            flushed += _count(zero)
            if EARLY:
                clamped += _count(inside & (tl.abs(inputs) > clamp))
            if LATE:
                clamped += _count(inside & (exponents > clamp))
    for first in range(0, columns, BLOCK):
        at = first + lane
        scores, _ = _scores(x, start + at, at < columns, clamp, EARLY)
        values, _ = _exponentials(scores, largest, clamp, LATE, SUBTRACT, HALF)
        tl.store(out + start + at, values / total.to(tl.float32), mask=at < columns)
    if COUNT:
        tl.store(counts + row * 4, clamped)
        tl.store(counts + row * 4 + 1, nonfinite)
        tl.store(counts + row * 4 + 2, overflowed)
        tl.store(counts + row * 4 + 3, flushed)
        tl.store(flushed_mass + row, lost / mass)


def softmax(
    x: torch.Tensor,
    *,
    clamp: float | None = None,
    clamp_at: str = "scores",
    subtract_max: bool = True,
    accumulate: str = "float32",
    saturated: Saturation | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the softmax of the rows of x.

    Args:
        x: [rows, columns] scores, contiguous.
        clamp: bound, above zero; None: no clamp.
        clamp_at: "scores": to ±clamp, before anything else; "exponents": to at most clamp, after
            the maximum is subtracted (where one above zero can never act).
        subtract_max: subtract the row's maximum; without, exponentials overflow in fp16 above
            ln 65504 = 11.09, in fp32 above 88.7.
        accumulate: format of exponents, exponentials and their sum: "float32", or "float16", in
            which e^x is the least subnormal below -16.6 and zero below -17.3.
        saturated: counters to write; None: nothing is counted.
        out: where to write; None: a new tensor.

    Raises:
        KernelInputError: wrong shape, dtype, device or option.
    """
    check_tensor("x", x, ("rows", "columns"), FLOATS)
    rows, columns = x.shape
    check(x.is_contiguous(), "x is not contiguous; rows must follow each other")
    check(clamp is None or clamp > 0, f"clamp is {clamp}; it must be above 0")
    _check_word("clamp_at", clamp_at, CLAMP_AT)
    _check_word("accumulate", accumulate, ACCUMULATE)
    if saturated is not None:
        check_tensor("counts", saturated.counts, (rows, len(COUNTS)), (torch.int32,), x.device)
        check(saturated.counts.is_contiguous(), "counts are not contiguous")
        mass = saturated.flushed_mass
        check_tensor("flushed_mass", mass, (rows,), (torch.float32,), x.device)
    out = torch.empty_like(x) if out is None else out
    check_tensor("out", out, (rows, columns), (x.dtype,), x.device)
    check(out.is_contiguous(), "out is not contiguous; rows must follow each other")
    if not rows or not columns:
        return out
    block = min(triton.next_power_of_2(columns), _MAX_BLOCK)
    _softmax[(rows,)](
        x,
        out,
        saturated.counts if saturated else x,
        saturated.flushed_mass if saturated else x,
        columns,
        float(clamp or 0.0),
        BLOCK=block,
        EARLY=clamp is not None and not CLAMP_AT[clamp_at],
        LATE=clamp is not None and CLAMP_AT[clamp_at],
        SUBTRACT=subtract_max,
        HALF=ACCUMULATE[accumulate],
        COUNT=saturated is not None,
        num_warps=warps_of(block),
    )
    return out


def warps_of(block: int) -> int:
    """Return the warps of a program that takes so many columns at once."""
    return max(1, min(16, block // 256))


def _check_word(name: str, word: str, known: dict[str, bool]) -> None:
    check(word in known, f"{name} is {word!r}; known are {', '.join(known)}")


SOURCES = (_softmax, _scores, _exponentials, _count)
