"""Cases and specialisations of the softmax."""

from functools import partial

import torch

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.dtypes import tolerance, torch_dtype
from kernels.reference import softmax as reference
from kernels.reference import softmax_saturation
from kernels.softmax import ACCUMULATE, COUNTS, SOURCES, Saturation, _softmax, softmax, warps_of

SHAPES: tuple[Shape, ...] = (
    {"rows": 1, "columns": 1},
    {"rows": 3, "columns": 129, "clamp": 4},
    {"rows": 2, "columns": 4096},
    {"rows": 2, "columns": 16389, "clamp": 9},
)
_SCALE = 5.0
"""Spread of the scores: some tails then vanish in fp16, none in fp32."""
_HALF_TOLERANCE = 1e-2
"""Exponents rounded to 11 bits: those of large terms lie above -8, so within 2^-9 of right."""


def _make_case(accumulate: str, shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make a softmax that counts; axes rows, columns, and optionally clamp (of the scores)."""
    rows, columns, clamp = shape["rows"], shape["columns"], shape.get("clamp")
    random = torch.Generator(device).manual_seed(seed)
    x = _SCALE * torch.randn(rows, columns, generator=random, device=device)
    x, half = x.to(torch_dtype(dtype)), ACCUMULATE[accumulate]
    out = poisoned((rows, columns), x.dtype, device)
    saturated = Saturation(
        poisoned((rows, len(COUNTS)), torch.int32, device),
        poisoned((rows,), torch.float32, device),
    )
    return Case(
        launch=partial(
            softmax, x, clamp=clamp, accumulate=accumulate, saturated=saturated, out=out
        ),
        outputs=(out, saturated.counts, saturated.flushed_mass),
        oracle=lambda: (
            reference(x, clamp),
            *softmax_saturation(x, clamp, subtract_max=True, half=half),
        ),
        tolerance=max(tolerance(dtype), _HALF_TOLERANCE if half else 0.0),
        moved_bytes=float(2 * x.nbytes + saturated.counts.nbytes + 4 * rows),
        flops=5.0 * rows * columns,
    )


def _compile_specs(accumulate: str, capability: int) -> tuple[CompileSpec, ...]:
    return (_spec(accumulate, 8192, count=True), _spec(accumulate, 8192, count=False))


def _spec(accumulate: str, block: int, *, count: bool) -> CompileSpec:
    pointers = {"x": "*fp16", "out": "*fp16", "counts": "*i32", "flushed_mass": "*fp32"}
    return CompileSpec(
        label=f"{block} columns at once" + (" counting" if count else ""),
        function=_softmax,
        signature={**pointers, "columns": "i32", "clamp": "fp32"},
        constexprs={
            "BLOCK": block,
            "EARLY": count,
            "LATE": False,
            "SUBTRACT": True,
            "HALF": ACCUMULATE[accumulate],
            "COUNT": count,
        },
        aligned=frozenset({*pointers, "columns"}),
        num_warps=warps_of(block),
    )


def _kernel(name: str, accumulate: str, dtypes: tuple[str, ...]) -> Kernel:
    return Kernel(
        name=name,
        make_case=partial(_make_case, accumulate),
        shapes=SHAPES,
        dtypes=dtypes,
        interpreted=tuple(dtype for dtype in dtypes if dtype != "bfloat16"),
        compile_specs=partial(_compile_specs, accumulate),
        sources=SOURCES,
    )


SOFTMAX = _kernel("softmax", "float32", ("float16", "bfloat16", "float32"))
SOFTMAX_HALF = _kernel("softmax_float16_sums", "float16", ("float16",))
