"""The first launch of a shape that Triton has not compiled: compiling, loading, launching.

Axis: `size`, the constant that a small softmax kernel is compiled for. Seconds are the host's, and
each repetition compiles anew, in a cache folder that is empty at first.
"""

import tempfile
import time

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.checks import check
from kernels.device import DeviceFacts
from kernels.probes.probe import Probe, must_agree, sizes_of
from kernels.timing import MIN_REPETITIONS, L2State, Timer, Timing

_NUM_WARPS = 4


@triton.jit
def _softmax(x, out, columns, SIZE: tl.constexpr, NUMBER: tl.constexpr):
    # NUMBER is not used: a number not seen before makes a kernel not compiled before.
    at = tl.arange(0, SIZE)
    inside = at < columns
    values = tl.load(x + at, mask=inside, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + at, powers / tl.sum(powers, axis=0), mask=inside)


def small_softmax(x: torch.Tensor, out: torch.Tensor, size: int, number: int = 0) -> None:
    """Compute the softmax of one row by the kernel compiled for (size, number).

    Args:
        x, out: float32 [columns].
        size: a power of two, at least columns.
        number: any; another one is compiled anew.
    """
    check(
        size >= x.numel() > 0 and size & (size - 1) == 0,
        f"size is {size}; a power of two of at least {max(1, x.numel())} is needed",
    )
    _softmax[(1,)](x, out, x.numel(), size, number, num_warps=_NUM_WARPS)


def _measure(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    (size,) = sizes_of(shape, FIRST_SHAPE.axes, size=1)
    x = torch.randn(max(1, size - 1), device=device)
    out = torch.empty_like(x)
    if device.type == "cuda":
        timing = Timing(_compiling(x, out, size), L2State.WARM)
    else:
        timing = timer.time(lambda: small_softmax(x, out, size), l2=L2State.WARM)
    must_agree("first_shape", out, x.double().softmax(0), 1e-5)
    return timing


_numbers = iter(range(1, 2**31))
"""Each is used once in a process: what was compiled stays in memory."""


def _compiling(x: torch.Tensor, out: torch.Tensor, size: int) -> NDArray[np.float64]:
    found = []
    with tempfile.TemporaryDirectory(prefix="triton-") as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        # Once uncounted, for what Triton sets up in a process once.
        for _ in range(MIN_REPETITIONS + 1):
            torch.cuda.synchronize(x.device)
            start_s = time.perf_counter()
            small_softmax(x, out, size, next(_numbers))
            torch.cuda.synchronize(x.device)
            found.append(time.perf_counter() - start_s)
    return np.array(found[1:])


def _sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    return ({"size": 1024}, {"size": 8192})


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    random = torch.Generator(device).manual_seed(seed)
    x = torch.randn(shape["columns"], generator=random, device=device)
    out = poisoned((shape["columns"],), torch.float32, device)
    return Case(
        launch=lambda: small_softmax(x, out, shape["size"]),
        outputs=(out,),
        oracle=lambda: (x.double().softmax(0),),
        tolerance=2e-6,
        moved_bytes=2.0 * x.nbytes,
        flops=3.0 * x.numel(),
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    return (
        CompileSpec(
            label="1024",
            function=_softmax,
            signature={"x": "*fp32", "out": "*fp32", "columns": "i32"},
            constexprs={"SIZE": 1024, "NUMBER": 0},
            aligned=frozenset({"x", "out"}),
            num_warps=_NUM_WARPS,
        ),
    )


FIRST_SHAPE_KERNEL = Kernel(
    name="probe_first_shape",
    make_case=_make_case,
    shapes=({"columns": 1, "size": 1}, {"columns": 100, "size": 128}),
    dtypes=("float32",),
    interpreted=("float32",),
    compile_specs=_compile_specs,
    sources=(_softmax,),
)

FIRST_SHAPE = Probe(
    name="first_shape",
    axes=("size",),
    sweep=_sweep,
    small=({"size": 64},),
    measure=_measure,
    what="one first launch",
    box_s=20.0,
)
