"""A kernel as the tests, the compile check and the measurements see it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

Shape = Mapping[str, int]
"""Sizes by axis, the axes of the kernel's own choosing."""


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel at one shape: inputs made, outputs poisoned, ready to launch.

    Attributes:
        launch: runs the kernel into `outputs`; allocates nothing and never waits for the GPU, so
            that it can be captured in a CUDA graph. Safe to call again.
        outputs: what it writes, filled with NaN (or an impossible integer) before.
        oracle: computes what `outputs` should hold, in float64, from the same inputs.
        tolerance: largest relative error (`kernels.judging.relative_error`) of any output.
        moved_bytes: bytes that must cross HBM with nothing in the L2.
        flops: multiplications and additions.
    """

    launch: Callable[[], object]
    outputs: tuple[torch.Tensor, ...]
    oracle: Callable[[], tuple[torch.Tensor, ...]]
    tolerance: float
    moved_bytes: float
    flops: float


@dataclass(frozen=True, slots=True)
class CompileSpec:
    """One specialisation of a Triton kernel, with the hints that a launch on a GPU gives.

    Attributes:
        label: what sets it apart from the kernel's other specialisations.
        function: the `@triton.jit` function.
        signature: type of each run-time argument: `*fp16`, `*fp8e4nv`, `i32`, `fp32` …
        constexprs: value of each `tl.constexpr` argument.
        aligned: arguments known to be divisible by 16 (pointers and strides usually are).
    """

    label: str
    function: Any
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    aligned: frozenset[str] = frozenset()
    num_warps: int = 4
    num_stages: int = 3


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: how to make a case of it, and how it is compiled.

    Attributes:
        name: key in `kernels.catalogue.KERNELS`.
        make_case: from a shape, a dtype name ("float16", "bfloat16", "float32", "fp8" …), a
            device and a seed.
        shapes: small shapes for correctness, edges included; each takes below a second in
            Triton's interpreter.
        dtypes: those it must be right for on a GPU.
        interpreted: those that Triton's interpreter computes rightly (bf16 and fp8 are not).
        compile_specs: the specialisations to compile for a compute capability (80, 90); none
            where the part has no such instructions.
    """

    name: str
    make_case: Callable[[Shape, str, torch.device, int], Case]
    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]
    interpreted: tuple[str, ...]
    compile_specs: Callable[[int], tuple[CompileSpec, ...]]
    sources: tuple[Any, ...] = field(default=())
    """The `@triton.jit` functions it runs, for the hash that measurements carry."""


def poisoned(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return an output nobody has written: NaN, or the least integer of an integer dtype."""
    if dtype.is_floating_point:
        return torch.full(shape, float("nan"), device=device).to(dtype)
    return torch.full(shape, torch.iinfo(dtype).min, dtype=dtype, device=device)


def no_specs(capability: int) -> tuple[CompileSpec, ...]:
    """Return no specialisation: for a kernel of a library, or one that the part cannot run."""
    return ()
