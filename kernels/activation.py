"""The gated activation of an MLP: silu(gate) · up, both from one product."""

from functools import partial

import torch
import triton
import triton.language as tl

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.checks import check, check_tensor
from kernels.dtypes import FLOATS, tolerance, torch_dtype
from kernels.reference import silu_mul as reference

_BLOCK = 1024


@triton.jit
def _silu_mul(gate_up, out, width, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    start = gate_up + row * row_stride
    gate = tl.load(start + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(start + width + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, gate / (1.0 + tl.exp(-gate)) * up, mask=inside)


def silu_mul(gate_up: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return silu(gate) · up, where silu(x) = x / (1 + e^-x).

    Args:
        gate_up: [rows, 2 · width], a row's gate before its up; rows of any stride.
        out: [rows, width], contiguous; None: a new tensor.

    Raises:
        KernelInputError: wrong shape, dtype or device.
    """
    check_tensor("gate_up", gate_up, ("rows", "2 * width"), FLOATS)
    rows, columns = gate_up.shape
    check(columns % 2 == 0, f"gate_up has {columns} columns; an even number is needed")
    width = columns // 2
    if out is None:
        out = torch.empty((rows, width), dtype=gate_up.dtype, device=gate_up.device)
    check_tensor("out", out, (rows, width), (gate_up.dtype,), gate_up.device)
    check(out.is_contiguous(), "out is not contiguous; rows must follow each other")
    if rows and width:
        grid = (rows, triton.cdiv(width, _BLOCK))
        _silu_mul[grid](gate_up, out, width, gate_up.stride(0), BLOCK=_BLOCK, num_warps=4)
    return out


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make an activation; axes rows and width."""
    rows, width, kind = shape["rows"], shape["width"], torch_dtype(dtype)
    random = torch.Generator(device).manual_seed(seed)
    gate_up = torch.randn(rows, 2 * width, generator=random, device=device).to(kind)
    out = poisoned((rows, width), kind, device)
    return Case(
        launch=partial(silu_mul, gate_up, out=out),
        outputs=(out,),
        oracle=lambda: (reference(gate_up),),
        tolerance=tolerance(dtype),
        moved_bytes=float(gate_up.nbytes + out.nbytes),
        flops=5.0 * rows * width,
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    spec = CompileSpec(
        label=f"{_BLOCK} columns",
        function=_silu_mul,
        signature={"gate_up": "*bf16", "out": "*bf16", "width": "i32", "row_stride": "i32"},
        constexprs={"BLOCK": _BLOCK},
        aligned=frozenset({"gate_up", "out", "width", "row_stride"}),
    )
    return (spec,)


SILU_MUL = Kernel(
    name="silu_mul",
    make_case=_make_case,
    shapes=({"rows": 1, "width": 1}, {"rows": 3, "width": 129}, {"rows": 2, "width": 4096}),
    dtypes=("float16", "bfloat16", "float32"),
    interpreted=("float16", "float32"),
    compile_specs=_compile_specs,
    sources=(_silu_mul,),
)
