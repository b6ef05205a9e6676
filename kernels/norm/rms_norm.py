"""RMSNorm over rows: y = x / sqrt(mean(x²) + eps) · weight."""

import torch
import triton
import triton.language as tl

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.checks import check, check_tensor
from kernels.dtypes import FLOATS, tolerance, torch_dtype
from kernels.reference import rms_norm as reference


@triton.jit
def _rms_norm(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / columns + eps)
    gain = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * columns + at, values * scale * gain, mask=inside)


def rms_norm(
    x: torch.Tensor, weight: torch.Tensor, *, eps: float = 1e-6, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the normalised rows of x.

    Args:
        x: [rows, columns], contiguous.
        weight: [columns], of x's dtype.
        out: where to write; None: a new tensor.

    Raises:
        KernelInputError: wrong shape, dtype or device.
    """
    check_tensor("x", x, ("rows", "columns"), FLOATS)
    rows, columns = x.shape
    check_tensor("weight", weight, (columns,), (x.dtype,), x.device)
    check(x.is_contiguous(), "x is not contiguous; rows must follow each other")
    if out is None:
        out = torch.empty_like(x)
    check_tensor("out", out, (rows, columns), (x.dtype,), x.device)
    if rows and columns:
        block = triton.next_power_of_2(columns)
        _rms_norm[(rows,)](x, weight, out, columns, eps, BLOCK=block, num_warps=_warps(block))
    return out


def _warps(block: int) -> int:
    return max(1, min(16, block // 256))


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    rows, columns = shape["rows"], shape["columns"]
    kind, random = torch_dtype(dtype), torch.Generator(device).manual_seed(seed)
    x = torch.randn(rows, columns, generator=random, device=device).to(kind)
    weight = torch.randn(columns, generator=random, device=device).to(kind)
    out = poisoned((rows, columns), kind, device)
    return Case(
        launch=lambda: rms_norm(x, weight, out=out),
        outputs=(out,),
        oracle=lambda: (reference(x, weight, 1e-6),),
        tolerance=tolerance(dtype),
        moved_bytes=float(2 * x.nbytes + weight.nbytes),
        flops=4.0 * rows * columns,
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    return tuple(
        CompileSpec(
            label=f"{block} columns",
            function=_rms_norm,
            signature={
                "x": "*bf16",
                "weight": "*bf16",
                "out": "*bf16",
                "columns": "i32",
                "eps": "fp32",
            },
            constexprs={"BLOCK": block},
            aligned=frozenset({"x", "weight", "out", "columns"}),
            num_warps=_warps(block),
        )
        for block in (1024, 4096, 8192)
    )


RMS_NORM = Kernel(
    name="rms_norm",
    make_case=_make_case,
    shapes=({"rows": 1, "columns": 1}, {"rows": 3, "columns": 129}, {"rows": 2, "columns": 4096}),
    dtypes=("float16", "bfloat16", "float32"),
    interpreted=("float16", "float32"),
    compile_specs=_compile_specs,
    sources=(_rms_norm,),
)
