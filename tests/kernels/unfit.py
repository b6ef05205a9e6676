"""Kernels that run in the interpreter and are unfit for a GPU, each for a reason of its own."""

import torch
import triton
import triton.language as tl

from kernels.case import Case, CompileSpec, Kernel, poisoned


@triton.jit
def _run_time_range(out, size):
    """Asks for a range that is known at run time only."""
    at = tl.arange(0, size)
    tl.store(out + at, at * 1.0)


@triton.jit
def _changing_sum(out, size):
    """Begins a sum as an integer and goes on with floats: loops carry one type."""
    total = 0
    for step in range(size):
        total += step * 0.5
    tl.store(out, total)


@triton.jit
def _many_registers(x, out, COLUMNS: tl.constexpr):  # noqa: N803
    """Keeps a whole tile of fp32 in the registers of one warp."""
    rows = tl.arange(0, COLUMNS)
    at = rows[:, None] * COLUMNS + rows[None, :]
    values = tl.load(x + at)
    tl.store(out + at, values - tl.sum(values, axis=0)[None, :] - tl.sum(values, axis=1)[:, None])


@triton.jit
def _much_shared_memory(x, out, steps, BLOCK: tl.constexpr):  # noqa: N803
    """Keeps eight steps of two fp16 tiles of 128 x 128 in flight: 512 KiB."""
    rows = tl.arange(0, BLOCK)
    at = rows[:, None] * BLOCK + rows[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for step in range(steps):
        start = x + step * 2 * BLOCK * BLOCK
        total = tl.dot(tl.load(start + at), tl.load(start + BLOCK * BLOCK + at), total)
    tl.store(out + at, total)


def changing_sum_case(shape, dtype, device, seed):
    """0.5 · (0 + 1 + … + size - 1), in a kernel that the interpreter computes rightly."""
    size, out = shape["size"], poisoned((1,), torch.float32, device)
    return Case(
        launch=lambda: _changing_sum[(1,)](out, size),
        outputs=(out,),
        oracle=lambda: (torch.tensor([0.25 * size * (size - 1)], dtype=torch.float64),),
        tolerance=1e-6,
        moved_bytes=4.0,
        flops=float(size),
    )


def _kernel(name, spec, make_case=changing_sum_case):
    return Kernel(
        name=name,
        make_case=make_case,
        shapes=({"size": 5},),
        dtypes=("float32",),
        interpreted=("float32",),
        compile_specs=lambda capability: (spec,),
        sources=(spec.function,),
    )


UNFIT = {
    name: _kernel(name, CompileSpec("unfit", function, signature, constexprs, **options))
    for name, function, signature, constexprs, options in (
        ("run_time_range", _run_time_range, {"out": "*fp32", "size": "i32"}, {}, {}),
        ("changing_sum", _changing_sum, {"out": "*fp32", "size": "i32"}, {}, {}),
        (
            "many_registers",
            _many_registers,
            {"x": "*fp32", "out": "*fp32"},
            {"COLUMNS": 128},
            {"num_warps": 1},
        ),
        (
            "much_shared_memory",
            _much_shared_memory,
            {"x": "*fp16", "out": "*fp32", "steps": "i32"},
            {"BLOCK": 128},
            {"num_warps": 8, "num_stages": 8, "aligned": frozenset({"x", "out"})},
        ),
    )
}
