"""Cases and specialisations of the norms."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.dtypes import tolerance, torch_dtype
from kernels.norm.rows import ACCUMULATE, LOOP_BLOCK, WHOLE_COLUMNS, block_of, warps_of

SHAPES: tuple[Shape, ...] = (
    {"rows": 1, "columns": 1},
    {"rows": 3, "columns": 129},
    {"rows": 2, "columns": 4096, "residual": 1},
    {"rows": 2, "columns": 16384},
    {"rows": 1, "columns": 28673, "residual": 1},
)
EPS = 1e-5
_HALF_TOLERANCE = 5e-3
"""Sums rounded to 11 bits at each addition, of up to 64 in a row and then a tree."""


@dataclass(frozen=True, slots=True)
class Norm:
    """One norm: its launcher, what it must compute, and what it runs.

    Attributes:
        launch: `rms_norm` or `layer_norm`.
        oracle: from x and the parameters, in float64, with `EPS`.
        parameters: names of the tensors [columns] that follow x.
        function: the `@triton.jit` function.
        sources: it, and those it calls.
    """

    launch: Callable[..., torch.Tensor]
    oracle: Callable[..., torch.Tensor]
    parameters: tuple[str, ...]
    function: Any
    sources: tuple[Any, ...]


def norm_kernel(name: str, norm: Norm, accumulate: str) -> Kernel:
    """Return a norm's entry of the catalogue, accumulating in one format.

    Sums in fp16 are for 16-bit rows only: of fp32 they'd lose what the oracle keeps.
    """
    half = ACCUMULATE[accumulate]
    return Kernel(
        name=name,
        make_case=partial(_make_case, norm, accumulate),
        shapes=SHAPES,
        dtypes=("float16", "bfloat16") if half else ("float16", "bfloat16", "float32"),
        interpreted=("float16",) if half else ("float16", "float32"),
        compile_specs=partial(_compile_specs, norm, accumulate),
        sources=norm.sources,
    )


def _make_case(
    norm: Norm, accumulate: str, shape: Shape, dtype: str, device: torch.device, seed: int
) -> Case:
    """Make a norm; axes rows, columns, and residual (1: one is added)."""
    rows, columns, kind = shape["rows"], shape["columns"], torch_dtype(dtype)
    random = torch.Generator(device).manual_seed(seed)

    def normal(*sizes: int) -> torch.Tensor:
        return torch.randn(*sizes, generator=random, device=device).to(kind)

    x, parameters = normal(rows, columns), [normal(columns) for _ in norm.parameters]
    out = poisoned((rows, columns), kind, device)
    # The sum goes beside the residual, not over it, so that a second launch does the same.
    added = {"residual": normal(rows, columns), "summed": poisoned((rows, columns), kind, device)}
    added = added if shape.get("residual") else {}

    def oracle() -> tuple[torch.Tensor, ...]:
        total = x + added["residual"] if added else x
        result = norm.oracle(total, *parameters, EPS)
        return (result, x.double() + added["residual"].double()) if added else (result,)

    return Case(
        launch=partial(
            norm.launch, x, *parameters, eps=EPS, accumulate=accumulate, out=out, **added
        ),
        outputs=(out, added["summed"]) if added else (out,),
        oracle=oracle,
        tolerance=max(tolerance(dtype), _HALF_TOLERANCE if ACCUMULATE[accumulate] else 0.0),
        moved_bytes=float((4 if added else 2) * x.nbytes + sum(p.nbytes for p in parameters)),
        flops=(2.0 + 2.0 * len(parameters)) * rows * columns,
    )


def _compile_specs(norm: Norm, accumulate: str, capability: int) -> tuple[CompileSpec, ...]:
    wide = _spec(norm, accumulate, WHOLE_COLUMNS + LOOP_BLOCK, add=True)
    whole = _spec(norm, accumulate, WHOLE_COLUMNS, add=False)
    if ACCUMULATE[accumulate]:
        return (whole, wide)
    return (_spec(norm, accumulate, 4096, add=True), whole, wide)


def _spec(norm: Norm, accumulate: str, columns: int, *, add: bool) -> CompileSpec:
    pointers = dict.fromkeys(("x", "residual", *norm.parameters, "summed", "out"), "*bf16")
    block = block_of(columns)
    return CompileSpec(
        label=f"{columns} columns" + (" residual" if add else ""),
        function=norm.function,
        signature={**pointers, "columns": "i32", "eps": "fp32"},
        constexprs={
            "BLOCK": block,
            "WHOLE": columns <= WHOLE_COLUMNS,
            "ADD": add,
            "HALF": ACCUMULATE[accumulate],
        },
        aligned=frozenset({*pointers, "columns"}),
        num_warps=warps_of(block),
    )
