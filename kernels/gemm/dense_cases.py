"""Cases and specialisations of the dense product, and of the library's at the same shapes."""

import math
from dataclasses import replace
from functools import partial

import torch

from kernels.case import Case, CompileSpec, Kernel, Shape, no_specs, poisoned
from kernels.compiling import SHARED_BYTES_PER_BLOCK
from kernels.dtypes import tolerance, torch_dtype
from kernels.gemm.config import HALF_CONFIGS, SINGLE_CONFIGS, UNALIGNED_CONFIGS, GemmConfig
from kernels.gemm.dense import SOURCES, _matmul, default_config, matmul, sum_splits
from kernels.gemm.dense import workspace_elements as elements
from kernels.reference import matmul as reference

SHAPES: tuple[Shape, ...] = (
    {"m": 1, "n": 1, "k": 1},
    {"m": 127, "n": 129, "k": 65, "lda": 67, "ldb": 131, "ldc": 133},
    {"m": 128, "n": 128, "k": 128, "transposed_b": 1},
    {"m": 129, "n": 257, "k": 96, "transposed_b": 1},
    {"m": 3, "n": 100, "k": 1030},
    {"m": 5, "n": 64, "k": 4096, "transposed_b": 1},
)
_SINGLE_K = 4096
"""Rounding in fp32 grows as the square root of k; up to here it stays below the tolerance."""


def operands(
    shape: Shape, dtype: str, device: torch.device, seed: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return random A and B and a poisoned C.

    Axes of the shape: m, n, k; optionally lda, ldb, ldc (elements from row to row, not below the
    row's length) and transposed_b (1: B is a weight [n, k], read as its transpose).
    """
    m, n, k = shape["m"], shape["n"], shape["k"]
    kind, random = torch_dtype(dtype), torch.Generator(device).manual_seed(seed)
    b_rows, b_columns = (n, k) if shape.get("transposed_b") else (k, n)
    lda, ldb, ldc = shape.get("lda", k), shape.get("ldb", b_columns), shape.get("ldc", n)
    a = torch.randn(m, lda, generator=random, device=device).to(kind)[:, :k]
    b = torch.randn(b_rows, ldb, generator=random, device=device).to(kind)[:, :b_columns]
    c = poisoned((m, ldc), kind, device)[:, :n]
    return a, b.T if shape.get("transposed_b") else b, c


def product_tolerance(dtype: str, k: int) -> float:
    """Return the relative error that a right product over k keeps below."""
    grown = max(1.0, math.sqrt(k / _SINGLE_K)) if dtype == "float32" else 1.0
    return tolerance(dtype) * grown


def _make_case(library: bool, shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    a, b, c = operands(shape, dtype, device, seed)
    m, n, k = shape["m"], shape["n"], shape["k"]
    config = default_config(a, b)
    return Case(
        launch=partial(torch.matmul, a, b, out=c) if library else launch(a, b, c, config),
        outputs=(c,),
        oracle=lambda: (reference(a, b),),
        tolerance=product_tolerance(dtype, k),
        moved_bytes=float((m * k + k * n + m * n) * a.element_size()),
        flops=2.0 * m * n * k,
    )


def launch(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, config: GemmConfig
) -> "partial[torch.Tensor]":
    """Return the product into `c` as a launch that allocates nothing."""
    size = elements(c.shape[0], c.shape[1], config)
    workspace = torch.empty(size, dtype=torch.float32, device=a.device) if size else None
    return partial(matmul, a, b, out=c, config=config, workspace=workspace)


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    shared_bytes = SHARED_BYTES_PER_BLOCK[capability]
    halves = [c for c in HALF_CONFIGS if c.shared_bytes(2) <= shared_bytes]
    return (
        *(_spec("bf16", config) for config in halves),
        # Of the rest the largest tiles, which come nearest to a spill.
        _spec("fp16", halves[-1], k_is="ragged"),
        _spec("fp16", halves[-1], by_rows=True),
        *(_spec("fp32", config) for config in SINGLE_CONFIGS[-2:]),
        *(_spec("bf16", config, k_is="odd") for config in UNALIGNED_CONFIGS[-2:]),
        _spec("fp32", UNALIGNED_CONFIGS[-1], k_is="odd", by_rows=True),
        _spec("fp16", replace(HALF_CONFIGS[0], split_k=8)),
        _one_row(_spec("fp16", HALF_CONFIGS[0])),
        _sum_spec(),
    )


def _spec(
    dtype: str, config: GemmConfig, *, k_is: str = "even", by_rows: bool = False
) -> CompileSpec:
    """Return a product.

    Args:
        k_is: "even" where whole steps make k, "ragged" where not, "odd" where besides no size or
            stride is divisible by 16.
        by_rows: B lies by rows; else it is a weight [n, k].
    """
    words = [
        dtype,
        f"{config.block_m}x{config.block_n}x{config.block_k}",
        f"{config.stages} stages",
    ]
    words += [k_is] * (k_is != "even") + ["rows"] * by_rows + ["split"] * (config.split_k > 1)
    unit, strided = ("stride_bn", "stride_bk") if by_rows else ("stride_bk", "stride_bn")
    sizes = ("m", "n", "k", "lda", strided, "ldc", "steps")
    result = "*fp32" if config.split_k > 1 else f"*{dtype}"
    pointers = {"a": f"*{dtype}", "b": f"*{dtype}", "c": result}
    return CompileSpec(
        label=" ".join(words),
        function=_matmul,
        signature={**pointers, **dict.fromkeys(sizes, "i32")},
        constexprs={
            unit: 1,
            "BLOCK_M": config.block_m,
            "BLOCK_N": config.block_n,
            "BLOCK_K": config.block_k,
            "GROUP_M": config.group_m,
            "EVEN_K": k_is == "even",
            "B_BY_ROWS": by_rows,
        },
        aligned=frozenset({*pointers, *(() if k_is == "odd" else set(sizes) - {"steps"})}),
        num_warps=config.warps,
        num_stages=config.stages,
    )


def _one_row(spec: CompileSpec) -> CompileSpec:
    """Return the product of one row: Triton makes a constant of an argument that is 1."""
    signature = {name: kind for name, kind in spec.signature.items() if name != "m"}
    return replace(
        spec,
        label=f"{spec.label} one row",
        signature=signature,
        constexprs={**spec.constexprs, "m": 1},
        aligned=spec.aligned - {"m"},
    )


def _sum_spec() -> CompileSpec:
    return CompileSpec(
        label="sum of splits",
        function=sum_splits,
        signature={"parts": "*fp32", "c": "*fp16", **dict.fromkeys(("m", "n", "ldc"), "i32")},
        constexprs={"SPLIT_K": 8, "BLOCK": 1024},
        aligned=frozenset({"parts", "c", "m", "n", "ldc"}),
    )


MATMUL = Kernel(
    name="matmul",
    make_case=partial(_make_case, False),
    shapes=SHAPES,
    dtypes=("float16", "bfloat16", "float32"),
    interpreted=("float16", "float32"),
    compile_specs=_compile_specs,
    sources=SOURCES,
)

MATMUL_LIBRARY = Kernel(
    name="matmul_library",
    make_case=partial(_make_case, True),
    shapes=SHAPES,
    dtypes=("float16", "bfloat16", "float32"),
    interpreted=("float16", "bfloat16", "float32"),
    compile_specs=no_specs,
)
"""`torch.matmul`: what engines call. It has no source here to compile or to hash."""
