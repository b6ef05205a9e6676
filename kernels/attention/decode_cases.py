"""Cases and specialisations of decode attention over paged and contiguous caches."""

from collections.abc import Callable
from functools import partial

import torch

from kernels.attention.batches import batch_of, lengths_of, normal
from kernels.attention.contiguous_decode import _contiguous_decode, contiguous_decode
from kernels.attention.paged_decode import _paged_decode, paged_decode
from kernels.attention.specs import attention_spec
from kernels.attention.splitting import (
    _MERGED_AT_ONCE,
    _merge_splits,
    decode_config,
    splits_for,
    workspace_elements,
)
from kernels.attention.tiles import (
    attend,
    group_rows,
    normalised,
    page_rows,
    split_tokens,
    store_stats,
    store_sums,
    weigh,
)
from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.dtypes import tolerance, torch_dtype
from kernels.reference import paged_attention

TILE_SOURCES = (
    _merge_splits,
    split_tokens,
    page_rows,
    weigh,
    group_rows,
    normalised,
    store_sums,
    store_stats,
)
DTYPES = ("float16", "bfloat16", "float32")


def decode_splits(shape: Shape, out: torch.Tensor, row_bytes: int) -> int:
    """Return how many splits a case takes: its axis `splits`, or the launcher's choice."""
    return shape.get("splits") or splits_for(
        decode_config(row_bytes), out, shape["kv_heads"], shape["context_tokens"], row_bytes
    )


def workspace_for(out: torch.Tensor, splits: int) -> torch.Tensor:
    """Return the memory that a decode kernel needs beside `out` [seqs, heads, dim]."""
    seqs, heads, dim = out.shape
    return torch.empty(workspace_elements(seqs, heads, dim, splits), device=out.device)


def decode_work(
    lengths: tuple[int, ...], query: torch.Tensor, kv_heads: int, row_bytes: int
) -> tuple[float, float]:
    """Return (bytes that must cross HBM, floating-point operations) of decode attention."""
    tokens, heads, dim = sum(lengths), query.shape[1], query.shape[2]
    moved = 2.0 * query.nbytes + 2.0 * tokens * kv_heads * row_bytes
    return moved, 4.0 * tokens * heads * dim


def ones_starts(seqs: int) -> torch.Tensor:
    """Return the starts of packed queries, one to a sequence."""
    return torch.arange(seqs + 1)


def _paged_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make a batch; axes seqs, heads, kv_heads, dim, block_tokens, context_tokens.

    Optional axes: splits (0: as the launcher chooses), ragged and ordered (see `batch_of`).
    """
    kind, batch = torch_dtype(dtype), batch_of(shape, seed)
    heads, kv_heads, dim = shape["heads"], shape["kv_heads"], shape["dim"]
    draw = normal(kind, device, seed)
    query = draw(shape["seqs"], heads, dim)
    key, value = (draw(batch.blocks, batch.block_tokens, kv_heads, dim) for _ in range(2))
    for cache in (key, value):
        batch.poison(cache, float("nan"))
    lens, tables = batch.context_lens(device), batch.tables.to(device)
    out, row_bytes = poisoned(tuple(query.shape), kind, device), dim * query.element_size()
    splits = decode_splits(shape, out, row_bytes)
    moved_bytes, flops = decode_work(batch.lengths, query, kv_heads, row_bytes)
    return Case(
        launch=partial(
            paged_decode,
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
        oracle=lambda: (
            paged_attention(
                query, key, value, batch.tables, ones_starts(len(query)), lens, dim**-0.5
            ),
        ),
        tolerance=tolerance(dtype),
        moved_bytes=moved_bytes + 4.0 * sum(-(-n // batch.block_tokens) for n in batch.lengths),
        flops=flops,
    )


def _contiguous_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make a batch; axes seqs, heads, kv_heads, dim, context_tokens.

    Optional axes: splits (0: as the launcher chooses), ragged (1: lengths differ).
    """
    kind, seqs, tokens = torch_dtype(dtype), shape["seqs"], shape["context_tokens"]
    heads, kv_heads, dim = shape["heads"], shape["kv_heads"], shape["dim"]
    draw = normal(kind, device, seed)
    query = draw(seqs, heads, dim)
    key, value = (draw(seqs, tokens, kv_heads, dim) for _ in range(2))
    lengths = lengths_of(seqs, tokens, ragged=bool(shape.get("ragged")), seed=seed)
    for seq, length in enumerate(lengths):
        for cache in (key, value):
            cache[seq, length:] = float("nan")
    lens = torch.tensor(lengths, dtype=torch.int32, device=device)
    out, row_bytes = poisoned(tuple(query.shape), kind, device), dim * query.element_size()
    splits = decode_splits(shape, out, row_bytes)
    # A sequence is one block of a paged cache, for the oracle.
    tables = torch.arange(seqs)[:, None]
    moved_bytes, flops = decode_work(lengths, query, kv_heads, row_bytes)
    return Case(
        launch=partial(
            contiguous_decode,
            query,
            key,
            value,
            lens,
            num_splits=splits,
            out=out,
            workspace=workspace_for(out, splits),
        ),
        outputs=(out,),
        oracle=lambda: (
            paged_attention(query, key, value, tables, ones_starts(seqs), lens, dim**-0.5),
        ),
        tolerance=tolerance(dtype),
        moved_bytes=moved_bytes,
        flops=flops,
    )


_COMPILED = (
    # dtype, dim, query heads to a KV head, tokens to a block, split
    ("bf16", 64, 8, 16, False),
    ("bf16", 64, 1, 128, True),
    ("bf16", 128, 4, 16, True),
    ("bf16", 128, 8, 128, True),
    ("fp16", 128, 1, 16, False),
    ("bf16", 256, 4, 16, True),
    ("fp16", 256, 8, 128, False),
    ("fp32", 128, 4, 16, True),
    ("fp32", 256, 4, 128, True),
)


def _spec(dtype: str, dim: int, group: int, block: int, split: bool) -> CompileSpec:
    """Return a specialisation of the paged kernel, or with block 0 of the contiguous one."""
    config = decode_config(dim * (4 if dtype == "fp32" else 2))
    function = _paged_decode if block else _contiguous_decode
    inputs = ("query", "key_cache", "value_cache", "key", "value", "out")
    sizes = {"GROUP": group, "ROWS": 16, "DIM": dim, "TILE": config.tile_tokens, "SPLIT": split}
    label = f"{dtype} {dim} group {group}" + (f" block {block}" if block else "")
    return attention_spec(
        label + (" split" if split else ""),
        function,
        dict.fromkeys(inputs, f"*{dtype}"),
        {**sizes, "BLOCK": block} if block else sizes,
        warps=config.warps,
        stages=config.paged_stages if block else config.stages,
    )


def _merge_spec(dim: int, parts: int) -> CompileSpec:
    return attention_spec(
        f"merge {parts} of {dim}",
        _merge_splits,
        {"out": "*bf16"},
        {"TILE": 64, "DIM": dim, "MAX_PARTS": parts, "AT_ONCE": _MERGED_AT_ONCE},
        warps=4,
        stages=3,
    )


def _paged_specs(capability: int) -> tuple[CompileSpec, ...]:
    return (*(_spec(*row) for row in _COMPILED), _merge_spec(64, 16), _merge_spec(256, 256))


def _contiguous_specs(capability: int) -> tuple[CompileSpec, ...]:
    # The paged kernel's loop but for its block table: fewer of them.
    return tuple(_spec(*row[:3], 0, row[4]) for row in (_COMPILED[2], _COMPILED[5], _COMPILED[7]))


_SHAPES: tuple[dict[str, int], ...] = (
    {"seqs": 4, "heads": 8, "kv_heads": 2, "dim": 64, "context_tokens": 129, "ragged": 1},
    {"seqs": 1, "heads": 1, "kv_heads": 1, "dim": 128, "context_tokens": 1},
    {"seqs": 2, "heads": 8, "kv_heads": 1, "dim": 128, "context_tokens": 513, "splits": 3},
    {"seqs": 3, "heads": 2, "kv_heads": 2, "dim": 256, "context_tokens": 127, "ragged": 1},
    # So many tiles that sums rounded to fp16 would be seen.
    {"seqs": 1, "heads": 5, "kv_heads": 1, "dim": 128, "context_tokens": 6145},
    {"seqs": 0, "heads": 2, "kv_heads": 1, "dim": 64, "context_tokens": 5},
)
_BLOCKS = (16, 128, 8, 256, 64, 32)


def _kernel(
    name: str,
    make_case: Callable[[Shape, str, torch.device, int], Case],
    shapes: tuple[Shape, ...],
    compile_specs: Callable[[int], tuple[CompileSpec, ...]],
    sources: tuple[object, ...],
) -> Kernel:
    return Kernel(
        name=name,
        make_case=make_case,
        shapes=shapes,
        dtypes=DTYPES,
        interpreted=("float16", "float32"),
        compile_specs=compile_specs,
        sources=sources,
    )


PAGED_DECODE = _kernel(
    "paged_decode",
    _paged_case,
    tuple({**shape, "block_tokens": block} for shape, block in zip(_SHAPES, _BLOCKS, strict=True)),
    _paged_specs,
    (_paged_decode, attend, *TILE_SOURCES),
)
CONTIGUOUS_DECODE = _kernel(
    "contiguous_decode",
    _contiguous_case,
    _SHAPES,
    _contiguous_specs,
    (_contiguous_decode, attend, *TILE_SOURCES),
)
