"""Cases and specialisations of the weight-only products."""

from collections.abc import Callable
from functools import partial

import torch

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.dtypes import tolerance, torch_dtype
from kernels.gemm.config import GemmConfig
from kernels.gemm.dense import workspace_elements
from kernels.gemm.quantised_weight import quantise_weight
from kernels.gemm.weight_only import (
    INT4_CONFIGS,
    INT4_SOURCES,
    INT8_CONFIGS,
    INT8_SOURCES,
    _matmul_int4,
    _matmul_int8,
    matmul_weight_only,
    weight_only_config,
)
from kernels.reference import matmul_weight_only as reference


def _make_case(bits: int, shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make a product; axes m, n, k and, at 4 bits, group."""
    m, n, k, group = shape["m"], shape["n"], shape["k"], shape.get("group")
    kind, random = torch_dtype(dtype), torch.Generator(device).manual_seed(seed)
    a = torch.randn(m, k, generator=random, device=device).to(kind)
    weight = torch.randn(k, n, generator=random, device=device)
    packed, scales = quantise_weight(weight, bits=bits, group=group)
    out = poisoned((m, n), kind, device)
    config = weight_only_config(a, n, bits=bits)
    size = workspace_elements(m, n, config)
    return Case(
        launch=partial(
            matmul_weight_only,
            a,
            packed,
            scales,
            bits=bits,
            group=group,
            out=out,
            config=config,
            workspace=torch.empty(size, device=device) if size else None,
        ),
        outputs=(out,),
        oracle=lambda: (reference(a, packed, scales, group),),
        tolerance=tolerance(dtype),
        moved_bytes=float(a.nbytes + packed.nbytes + scales.nbytes + out.nbytes),
        flops=2.0 * m * n * k,
    )


def _specs(bits: int, capability: int) -> tuple[CompileSpec, ...]:
    if bits == 8:
        return tuple(_spec(config, None) for config in INT8_CONFIGS)
    return (*(_spec(config, 128) for config in INT4_CONFIGS), _spec(INT4_CONFIGS[-1], 32))


def _spec(config: GemmConfig, group: int | None) -> CompileSpec:
    sizes = ("m", "n", "k", "lda", "ldc")
    pointers = {
        "a": "*bf16",
        "codes": "*u8" if group else "*i8",
        "scales": "*fp16",
        "c": "*bf16",
    }
    tile = {"BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "GROUP_M": config.group_m}
    depth = {"GROUP": group} if group else {"BLOCK_K": config.block_k, "EVEN_K": True}
    return CompileSpec(
        label=f"{config.block_m}x{config.block_n}" + (f" group {group}" if group else ""),
        function=_matmul_int4 if group else _matmul_int8,
        signature={**pointers, **dict.fromkeys(sizes, "i32"), "steps": "i32"},
        constexprs={**tile, **depth},
        aligned=frozenset({*pointers, *sizes}),
        num_warps=config.warps,
        num_stages=config.stages,
    )


def _kernel(bits: int, shapes: tuple[Shape, ...]) -> Kernel:
    specs: Callable[[int], tuple[CompileSpec, ...]] = partial(_specs, bits)
    return Kernel(
        name=f"matmul_int{bits}",
        make_case=partial(_make_case, bits),
        shapes=shapes,
        dtypes=("float16", "bfloat16"),
        interpreted=("float16",),
        compile_specs=specs,
        sources=INT8_SOURCES if bits == 8 else INT4_SOURCES,
    )


MATMUL_INT8 = _kernel(
    8,
    (
        {"m": 1, "n": 1, "k": 1},
        {"m": 127, "n": 129, "k": 65},
        {"m": 5, "n": 96, "k": 2064},
    ),
)
MATMUL_INT4 = _kernel(
    4,
    (
        {"m": 1, "n": 2, "k": 32, "group": 32},
        {"m": 127, "n": 129, "k": 192, "group": 64},
        {"m": 5, "n": 96, "k": 2176, "group": 128},
    ),
)
