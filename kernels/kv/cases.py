"""Cases and specialisations of writing and quantising keys and values into pages."""

from collections.abc import Mapping
from typing import Any

import torch

from kernels.attention.batches import normal
from kernels.attention.quantised_cases import quantised
from kernels.case import Case, CompileSpec, Kernel, Shape
from kernels.dtypes import torch_dtype
from kernels.kv.quantise import (
    _ROWS,
    SOURCES_4BIT,
    SOURCES_8BIT,
    _quantise_4bit,
    _quantise_8bit,
    quantise_kv,
)
from kernels.kv.quantised import LARGEST_CODE, QuantisedKv
from kernels.kv.write import _write_kv, write_kv, write_tile

_UNTOUCHED = -1234.0
"""In slots that nobody writes: a number that every float format holds and no input is."""
_UNTOUCHED_BYTE = {torch.int8: 0x80, torch.uint8: 0x5A, torch.float8_e4m3fn: 0x5A}
"""The same of codes; in int8 it is -128, which no code is."""
_FP8_NAN = 0x7F
_SAME = 1e-7
"""What is copied or rounded is the same number, not nearly the same."""


def _slots(shape: Shape, device: torch.device, seed: int) -> torch.Tensor:
    """Return slots anywhere in a pool of twice as many as tokens, each third token skipped."""
    tokens = shape["tokens"]
    random = torch.Generator().manual_seed(seed)
    slots = torch.randperm(_blocks(shape) * shape["block_tokens"], generator=random)[:tokens]
    if shape.get("padded"):
        slots[::3] = -1
    return slots.to(device)


def _blocks(shape: Shape) -> int:
    return 2 * -(-shape["tokens"] // shape["block_tokens"]) + 1


def _placed(cache: torch.Tensor, rows: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
    """Return a copy of a cache with rows in their slots, token by token."""
    result = cache.clone()
    flat = result.view(torch.uint8) if cache.element_size() == 1 else result
    rows = rows.view(torch.uint8) if cache.element_size() == 1 else rows
    for token, slot in enumerate(slots.tolist()):
        if slot >= 0:
            flat[slot // cache.shape[1], slot % cache.shape[1]] = rows[token]
    return result


def _write_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make tokens; axes tokens, kv_heads, dim, block_tokens, padded (1: some slots negative)."""
    kind, slots = torch_dtype(dtype), _slots(shape, device, seed)
    tokens, kv_heads, dim = shape["tokens"], shape["kv_heads"], shape["dim"]
    key, value = normal(kind, device, seed)(2, tokens, kv_heads, dim)
    size = (_blocks(shape), shape["block_tokens"], kv_heads, dim)
    caches = [_marked(size, kind, slots) for _ in range(2)]
    before = [cache.clone() for cache in caches]
    return Case(
        launch=lambda: write_kv(key, value, caches[0], caches[1], slots),
        outputs=tuple(caches),
        oracle=lambda: tuple(
            _placed(cache, rows, slots) for cache, rows in zip(before, (key, value), strict=True)
        ),
        tolerance=_SAME,
        moved_bytes=float(2 * (key.nbytes + value.nbytes) + slots.nbytes),
        flops=0.0,
    )


def _quantise_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make tokens in format `dtype`; axes as of `write_kv`, group, per_token, per_head."""
    slots, tokens = _slots(shape, device, seed), shape["tokens"]
    kv_heads, dim = shape["kv_heads"], shape["dim"]
    key, value = normal(torch.float16, device, seed)(2, tokens, kv_heads, dim)
    # As the oracle quantises them, each token a block of its own.
    wanted = [quantised(rows[:, None], dtype, shape) for rows in (key, value)]
    caches = [_empty_like(one, shape, slots) for one in wanted]
    outputs = [tensor for cache in caches for tensor in _written(cache)]
    before = [tensor.clone() for tensor in outputs]
    rows = [tensor[:, 0] for one in wanted for tensor in _written(one)]
    return Case(
        launch=lambda: quantise_kv(key, value, caches[0], caches[1], slots),
        outputs=tuple(outputs),
        oracle=lambda: tuple(
            _placed(cache, row, slots) for cache, row in zip(before, rows, strict=True)
        ),
        tolerance=_SAME,
        moved_bytes=float(key.nbytes + value.nbytes + sum(row.nbytes for row in rows)),
        flops=0.0,
    )


def _marked(size: tuple[int, ...], dtype: torch.dtype, slots: torch.Tensor) -> torch.Tensor:
    """Return a cache with poison where the kernel must write, and a mark where nobody may."""
    if dtype in _UNTOUCHED_BYTE:
        cache = torch.full(size, _UNTOUCHED_BYTE[dtype], dtype=torch.uint8, device=slots.device)
        if dtype is torch.float8_e4m3fn:
            cache.flatten(0, 1)[slots[slots >= 0]] = _FP8_NAN
        return cache.view(dtype)
    cache = torch.full(size, _UNTOUCHED, dtype=dtype, device=slots.device)
    cache.flatten(0, 1)[slots[slots >= 0]] = float("nan")
    return cache


def _empty_like(one: QuantisedKv, shape: Shape, slots: torch.Tensor) -> QuantisedKv:
    """Return a cache of the same format as another, with nothing written yet."""
    outer = (_blocks(shape), shape["block_tokens"])
    codes = _marked((*outer, *one.codes.shape[2:]), one.codes.dtype, slots)
    scales = one.scales
    if one.granularity in ("token", "group"):
        scales = _marked((*outer, *scales.shape[2:]), scales.dtype, slots)
    return QuantisedKv(codes, scales, one.format, one.granularity, one.group)


def _written(cache: QuantisedKv) -> tuple[torch.Tensor, ...]:
    written = cache.granularity in ("token", "group")
    return (cache.codes, cache.scales) if written else (cache.codes,)


def _write_specs(capability: int) -> tuple[CompileSpec, ...]:
    return tuple(_write_spec(heads, dim) for heads, dim in ((8, 128), (1, 128), (4, 256)))


def _write_spec(kv_heads: int, dim: int) -> CompileSpec:
    tokens, columns = write_tile(kv_heads, dim)
    pointers = dict.fromkeys(("key", "value", "key_cache", "value_cache"), "*bf16")
    sizes = {"KV_HEADS": kv_heads, "DIM": dim, "TOKENS": tokens, "COLUMNS": columns}
    return _spec(f"{kv_heads} heads of {dim}", _write_kv, pointers, sizes)


def _quantise_specs(capability: int) -> tuple[CompileSpec, ...]:
    formats = ("fp8", "int8") if capability >= 89 else ("int8",)
    eight = [_eight_spec(format, dim) for format in formats for dim in (64, 256)]
    return (*eight, *(_four_spec(dim, group) for dim, group in ((64, 64), (128, 32), (256, 16))))


def _eight_spec(format: str, dim: int) -> CompileSpec:
    code = "*fp8e4nv" if format == "fp8" else "*i8"
    pointers = {"key_codes": code, "value_codes": code}
    pointers |= {"key_scales": "*fp32", "value_scales": "*fp32"}
    own = {"LARGEST": LARGEST_CODE[format], "INTEGER": format == "int8"}
    sizes = {"KV_HEADS": 8, "DIM": dim, "ROWS": _ROWS, **own, "PER_TOKEN": True}
    return _spec(f"{format} {dim}", _quantise_8bit, pointers, sizes)


def _four_spec(dim: int, group: int) -> CompileSpec:
    pointers = {"key_codes": "*u8", "value_codes": "*u8"}
    pointers |= {"key_scales": "*fp16", "value_scales": "*fp16"}
    sizes = {"KV_HEADS": 8, "DIM": dim, "ROWS": _ROWS, "GROUP": group}
    return _spec(f"int4 {dim} scale each {group}", _quantise_4bit, pointers, sizes)


def _spec(
    label: str, function: Any, pointers: Mapping[str, str], constexprs: Mapping[str, object]
) -> CompileSpec:
    pointers = {"key": "*bf16", "value": "*bf16", "slots": "*i64", **pointers}
    names = [name for name in function.arg_names if name not in constexprs]
    unaligned = ("tokens", "scale_stride", "block_tokens")
    return CompileSpec(
        label=label,
        function=function,
        signature={name: pointers.get(name, "i32") for name in names},
        constexprs=constexprs,
        aligned=frozenset(name for name in names if name not in unaligned),
    )


_SHAPES: tuple[Shape, ...] = (
    {"tokens": 1, "kv_heads": 1, "dim": 64, "block_tokens": 8, "group": 64},
    {"tokens": 37, "kv_heads": 2, "dim": 128, "block_tokens": 16, "padded": 1, "per_token": 1},
    {
        "tokens": 5,
        "kv_heads": 3,
        "dim": 256,
        "block_tokens": 128,
        "padded": 1,
        "group": 16,
        "per_head": 1,
    },
    {"tokens": 0, "kv_heads": 2, "dim": 64, "block_tokens": 16},
)
WRITE_KV = Kernel(
    name="write_kv",
    make_case=_write_case,
    shapes=_SHAPES,
    dtypes=("float16", "bfloat16", "float32"),
    interpreted=("float16", "bfloat16", "float32"),
    compile_specs=_write_specs,
    sources=(_write_kv,),
)
QUANTISE_KV = Kernel(
    name="quantise_kv",
    make_case=_quantise_case,
    shapes=_SHAPES,
    dtypes=("fp8", "int8", "int4"),
    interpreted=("int8", "int4"),
    compile_specs=_quantise_specs,
    sources=(*SOURCES_8BIT, *SOURCES_4BIT),
)
