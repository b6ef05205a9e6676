"""Cases and specialisations of the fp8 product."""

from functools import partial

import torch

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.compiling import SHARED_BYTES_PER_BLOCK
from kernels.dtypes import tolerance
from kernels.gemm.config import FP8_CONFIGS, UNALIGNED_CONFIGS, GemmConfig
from kernels.gemm.dense import default_config, workspace_elements
from kernels.gemm.fp8 import SOURCES, _matmul_fp8, matmul_fp8, quantise_fp8
from kernels.reference import matmul_fp8 as reference


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make a product; axes m, n, k, and by_axis (1: a scale each row of A and column of B)."""
    m, n, k = shape["m"], shape["n"], shape["k"]
    random = torch.Generator(device).manual_seed(seed)
    by_axis = bool(shape.get("by_axis"))
    a, scale_a = quantise_fp8(
        torch.randn(m, k, generator=random, device=device), axis=0 if by_axis else None
    )
    weight, scale_b = quantise_fp8(
        torch.randn(n, k, generator=random, device=device), axis=0 if by_axis else None
    )
    b, out = weight.T, poisoned((m, n), torch.float16, device)
    config = default_config(a, b)
    size = workspace_elements(m, n, config)
    return Case(
        launch=partial(
            matmul_fp8,
            a,
            b,
            scale_a,
            scale_b,
            out=out,
            config=config,
            workspace=torch.empty(size, device=device) if size else None,
        ),
        outputs=(out,),
        oracle=lambda: (reference(a, b, scale_a, scale_b),),
        tolerance=tolerance("float16"),
        moved_bytes=float(m * k + k * n + 2 * m * n),
        flops=2.0 * m * n * k,
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    if capability < 89:
        return ()
    configs = [c for c in FP8_CONFIGS if c.shared_bytes(1) <= SHARED_BYTES_PER_BLOCK[capability]]
    return (
        *(_spec(config) for config in configs),
        _spec(configs[-1], two_level=False),
        _spec(UNALIGNED_CONFIGS[-1], odd=True),
    )


def _spec(config: GemmConfig, *, two_level: bool = True, odd: bool = False) -> CompileSpec:
    label = f"{config.block_m}x{config.block_n}x{config.block_k} {config.stages} stages"
    sizes = ("m", "n", "k", "lda", "ldb", "ldc", "steps")
    operands = {"a": "*fp8e4nv", "b": "*fp8e4nv", "c": "*bf16"}
    pointers = {**operands, "scale_a": "*fp32", "scale_b": "*fp32"}
    return CompileSpec(
        label=label + ("" if two_level else " one level") + (" odd" if odd else ""),
        function=_matmul_fp8,
        signature={**pointers, **dict.fromkeys(sizes, "i32")},
        constexprs={
            "BLOCK_M": config.block_m,
            "BLOCK_N": config.block_n,
            "BLOCK_K": config.block_k,
            "GROUP_M": config.group_m,
            "EVEN_K": not odd,
            "BY_ROW": True,
            "BY_COLUMN": True,
            "IMPRECISE": min(128, config.block_k) if two_level else None,
        },
        aligned=frozenset({*pointers, *(() if odd else set(sizes) - {"steps"})}),
        num_warps=config.warps,
        num_stages=config.stages,
    )


MATMUL_FP8 = Kernel(
    name="matmul_fp8",
    make_case=_make_case,
    shapes=(
        {"m": 1, "n": 16, "k": 32},
        {"m": 127, "n": 129, "k": 257},
        {"m": 129, "n": 96, "k": 384, "by_axis": 1},
        {"m": 3, "n": 64, "k": 2064, "by_axis": 1},
    ),
    dtypes=("fp8",),
    interpreted=("fp8",),  # codes widen rightly there; only NaN codes do not, and none are made
    compile_specs=_compile_specs,
    sources=SOURCES,
)
