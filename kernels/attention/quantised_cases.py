"""Cases and specialisations of decode attention over a quantised cache."""

from collections.abc import Callable
from functools import partial

import torch

from kernels.attention.batches import batch_of, normal
from kernels.attention.decode_cases import TILE_SOURCES, decode_work, ones_starts, workspace_for
from kernels.attention.eight_bit_decode import _eight_bit_decode
from kernels.attention.four_bit_decode import _four_bit_decode, _scale_words, _widened
from kernels.attention.quantised_decode import quantised_config, quantised_decode
from kernels.attention.specs import attention_spec
from kernels.attention.splitting import splits_for
from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.dtypes import tolerance, torch_dtype
from kernels.kv.quantised import QuantisedKv
from kernels.reference import dequantise, paged_attention, quantise

_GROUP = 32
_FP8_CAPABILITY = 89
_TENSOR_SCALE = 6.0 / 448
"""Reaches six standard deviations of the Gaussian keys and values."""


def granularity_of(format: str, shape: Shape) -> str:
    """Return what shares a scale: in fp8 a tensor, or with axis per_head or per_token those."""
    if format != "fp8":
        return "token" if format == "int8" else "group"
    if shape.get("per_token"):
        return "token"
    return "head" if shape.get("per_head") else "tensor"


def quantised(cache: torch.Tensor, format: str, shape: Shape) -> QuantisedKv:
    """Return a cache [blocks, block_tokens, kv_heads, dim], quantised by the oracle.

    Axes: group (of int4; 32), per_token and per_head (of fp8).
    """
    granularity = granularity_of(format, shape)
    group = shape.get("group", _GROUP) if format == "int4" else None
    given = None
    if granularity in ("tensor", "head"):
        count = cache.shape[2] if granularity == "head" else 1
        given = _TENSOR_SCALE * torch.arange(1, count + 1, device=cache.device).float()
    codes, scales = quantise(cache, format, group, None if given is None else given[:, None])
    scales = scales if given is None else given
    return QuantisedKv(codes.contiguous(), scales.contiguous(), format, granularity, group)


def poison_cache(cache: QuantisedKv, poison: Callable[[torch.Tensor, float], None]) -> None:
    """Apply a batch's poison to codes and scales: not a number where the format has one."""
    codes = cache.codes.view(torch.uint8) if cache.format == "fp8" else cache.codes
    poison(codes, {"fp8": 0x7F, "int8": -128, "int4": 0xFF}[cache.format])
    if cache.granularity in ("token", "group"):
        poison(cache.scales, float("nan"))


def _make_case(query_dtype: str, shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make a batch in format `dtype`; axes as of `paged_decode`, and those of `quantised`."""
    kind, batch = torch_dtype(query_dtype), batch_of(shape, seed)
    heads, kv_heads, dim = shape["heads"], shape["kv_heads"], shape["dim"]
    draw = normal(kind, device, seed)
    query = draw(shape["seqs"], heads, dim)
    size = (batch.blocks, batch.block_tokens, kv_heads, dim)
    key, value = (quantised(draw(*size), dtype, shape) for _ in range(2))
    for cache in (key, value):
        poison_cache(cache, batch.poison)
    lens, tables = batch.context_lens(device), batch.tables.to(device)
    out = poisoned(tuple(query.shape), kind, device)
    config = quantised_config(dim)
    splits = shape.get("splits") or splits_for(
        config, out, kv_heads, shape["context_tokens"], key.row_bytes
    )

    def oracle() -> tuple[torch.Tensor, ...]:
        keys, values = (dequantise(c.codes, c.scales, c.granularity, c.group) for c in (key, value))
        starts = ones_starts(len(query))
        return (paged_attention(query, keys, values, batch.tables, starts, lens, dim**-0.5),)

    moved_bytes, flops = decode_work(batch.lengths, query, kv_heads, key.row_bytes)
    return Case(
        launch=partial(
            quantised_decode,
            query,
            key,
            value,
            tables,
            lens,
            num_splits=splits,
            out=out,
            workspace=workspace_for(out, splits),
        ),
        outputs=(out,),
        oracle=oracle,
        tolerance=tolerance(query_dtype),
        moved_bytes=moved_bytes + 4.0 * sum(-(-n // batch.block_tokens) for n in batch.lengths),
        flops=flops,
    )


_EIGHT_BITS = (
    # dim, query heads to a KV head, tokens to a block, split, a scale each token
    (64, 8, 16, False, False),
    (128, 4, 16, True, False),
    (128, 8, 128, True, True),
    (256, 4, 16, False, True),
)
_FOUR_BITS = (
    # dim, query heads to a KV head, tokens to a block, split, group
    (64, 8, 16, False, 64),
    (128, 4, 16, True, 32),
    (128, 8, 128, False, 16),
    (256, 4, 16, True, 64),
    (256, 8, 128, False, 16),
)
_TYPES = {"fp8": "*fp8e4nv", "int8": "*i8", "int4": "*u8"}


def _compile_specs(query_dtype: str, capability: int) -> tuple[CompileSpec, ...]:
    kind = {"float16": "fp16", "bfloat16": "bf16"}[query_dtype]
    rows: list[tuple[str, int, int, int, bool, int]] = []
    rows += [("fp8", *row) for row in _EIGHT_BITS if capability >= _FP8_CAPABILITY]
    rows += [("int8", *row) for row in _EIGHT_BITS if row[-1]]
    rows += [("int4", *row) for row in _FOUR_BITS]
    if query_dtype == "float16":  # little differs by the queries' dtype: each format once
        rows = list({row[0]: row for row in rows}.values())
    return tuple(_spec(kind, *row) for row in rows)


def _spec(
    kind: str, format: str, dim: int, group: int, block: int, split: bool, last: int
) -> CompileSpec:
    """Return a specialisation; `last` is the group of int4, else whether scales are tokens'."""
    four, scales = format == "int4", "*i32" if format == "int4" else "*fp32"
    pointers = dict.fromkeys(("query", "out"), f"*{kind}")
    pointers |= dict.fromkeys(("key_codes", "value_codes"), _TYPES[format])
    pointers |= dict.fromkeys(("key_scales", "value_scales"), scales)
    config = quantised_config(dim)
    sizes = {"GROUP": group, "ROWS": 16, "DIM": dim, "BLOCK": block, "TILE": config.tile_tokens}
    own = {"CODES": last} if four else {"PER_TOKEN": bool(last)}
    label = f"{format} {dim} group {group} block {block}" + (" split" if split else "")
    return attention_spec(
        label + (f" scale each {last}" if four else " scale each token" if last else ""),
        _four_bit_decode if four else _eight_bit_decode,
        pointers,
        {**sizes, "SPLIT": split, **own},
        warps=config.warps,
        stages=config.paged_stages,
    )


def _kernel(name: str, query_dtype: str, interpreted: tuple[str, ...]) -> Kernel:
    return Kernel(
        name=name,
        make_case=partial(_make_case, query_dtype),
        shapes=_SHAPES,
        dtypes=("fp8", "int8", "int4"),
        interpreted=interpreted,
        compile_specs=partial(_compile_specs, query_dtype),
        sources=(_eight_bit_decode, _four_bit_decode, _scale_words, _widened, *TILE_SOURCES),
    )


_SHAPES: tuple[Shape, ...] = (
    {
        "seqs": 4,
        "heads": 8,
        "kv_heads": 2,
        "dim": 64,
        "block_tokens": 16,
        "context_tokens": 129,
        "ragged": 1,
        "group": 64,
        "per_head": 1,
    },
    {
        "seqs": 2,
        "heads": 4,
        "kv_heads": 1,
        "dim": 128,
        "block_tokens": 128,
        "context_tokens": 385,
        "splits": 3,
        "group": 32,
        "per_token": 1,
    },
    {
        "seqs": 3,
        "heads": 2,
        "kv_heads": 2,
        "dim": 256,
        "block_tokens": 8,
        "context_tokens": 65,
        "ragged": 1,
        "group": 16,
    },
)
QUANTISED_DECODE = _kernel("quantised_decode", "float16", ("fp8", "int8", "int4"))
QUANTISED_DECODE_BF16 = _kernel("quantised_decode_bf16", "bfloat16", ())
