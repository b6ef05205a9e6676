"""Cases and specialisations of chunked prefill over a paged cache."""

from functools import partial

import torch

from kernels.attention.batches import normal, paged_batch
from kernels.attention.paged_prefill import _paged_prefill, paged_prefill, prefill_config
from kernels.attention.specs import attention_spec
from kernels.attention.tiles import attend, normalised, page_rows, weigh
from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.dtypes import tolerance, torch_dtype
from kernels.reference import paged_attention


def _chunks(shape: Shape, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return (queries, context) of each sequence: all alike, or the longest, none, one, others."""
    seqs, most, cached = shape["seqs"], shape["query_tokens"], shape["cached_tokens"]
    if not shape.get("ragged"):
        return (most,) * seqs, (most + cached,) * seqs
    random = torch.Generator().manual_seed(seed)
    others = torch.randint(0, most + 1, (seqs,), generator=random).tolist()
    before = torch.randint(0, cached + 1, (seqs,), generator=random).tolist()
    queries = [most, 0, 1, *others][:seqs]
    # One sequence has nothing cached before its chunk.
    cached_before = [cached, cached, 0, *before][:seqs]
    return tuple(queries), tuple(q + c for q, c in zip(queries, cached_before, strict=True))


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make a batch; axes seqs, heads, kv_heads, dim, block_tokens, query_tokens, cached_tokens.

    cached_tokens lie before the chunk of query_tokens. Optional axes: ragged (1: both differ
    between sequences), ordered (1: blocks follow each other).
    """
    kind, (queries, lengths) = torch_dtype(dtype), _chunks(shape, seed)
    batch = paged_batch(lengths, shape["block_tokens"], seed, shuffled=not shape.get("ordered", 0))
    heads, kv_heads, dim = shape["heads"], shape["kv_heads"], shape["dim"]
    draw = normal(kind, device, seed)
    query = draw(sum(queries), heads, dim)
    key, value = (draw(batch.blocks, batch.block_tokens, kv_heads, dim) for _ in range(2))
    for cache in (key, value):
        batch.poison(cache, float("nan"))
    starts = torch.tensor((0, *queries)).cumsum(0).to(torch.int32)
    lens, out = batch.context_lens(device), poisoned(tuple(query.shape), kind, device)
    seen = sum(q * (n - q) + q * (q + 1) / 2 for q, n in zip(queries, lengths, strict=True))
    return Case(
        launch=partial(
            paged_prefill,
            query,
            key,
            value,
            batch.tables.to(device),
            starts.to(device),
            lens,
            max_query_tokens=max((0, *queries)),
            out=out,
        ),
        outputs=(out,),
        oracle=lambda: (paged_attention(query, key, value, batch.tables, starts, lens, dim**-0.5),),
        tolerance=tolerance(dtype),
        moved_bytes=2.0 * query.nbytes + 2.0 * sum(lengths) * kv_heads * dim * kind.itemsize,
        flops=4.0 * seen * heads * dim,
    )


_COMPILED = (
    # dtype, dim, query heads to a KV head, tokens to a block
    ("bf16", 64, 4, 16),
    ("fp16", 64, 1, 128),
    ("bf16", 128, 4, 16),
    ("bf16", 128, 8, 128),
    ("bf16", 256, 4, 16),
    ("bf16", 256, 8, 128),
    ("fp32", 128, 4, 16),
    ("fp32", 256, 4, 128),
)


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    return tuple(_spec(capability, *row) for row in _COMPILED)


def _spec(capability: int, dtype: str, dim: int, group: int, block: int) -> CompileSpec:
    config = prefill_config(dim, 4 if dtype == "fp32" else 2, capability)
    inputs = ("query", "key_cache", "value_cache", "out")
    sizes = {"GROUP": group, "DIM": dim, "BLOCK": block}
    return attention_spec(
        f"{dtype} {dim} group {group} block {block}",
        _paged_prefill,
        dict.fromkeys(inputs, f"*{dtype}"),
        {**sizes, "ROWS": config.rows, "TILE": config.tile_tokens},
        warps=config.warps,
        stages=config.stages,
    )


def _shape(heads: int, kv_heads: int, dim: int, **others: int) -> Shape:
    return {"heads": heads, "kv_heads": kv_heads, "dim": dim, **others}


PAGED_PREFILL = Kernel(
    name="paged_prefill",
    make_case=_make_case,
    shapes=(
        _shape(2, 1, 64, seqs=4, block_tokens=16, query_tokens=65, cached_tokens=70, ragged=1),
        _shape(1, 1, 128, seqs=1, block_tokens=8, query_tokens=1, cached_tokens=0),
        _shape(3, 1, 128, seqs=1, block_tokens=128, query_tokens=44, cached_tokens=85),
        _shape(2, 2, 256, seqs=3, block_tokens=32, query_tokens=17, cached_tokens=48, ragged=1),
        _shape(2, 1, 64, seqs=0, block_tokens=16, query_tokens=8, cached_tokens=8),
    ),
    dtypes=("float16", "bfloat16", "float32"),
    interpreted=("float16", "float32"),
    compile_specs=_compile_specs,
    sources=(_paged_prefill, attend, weigh, page_rows, normalised),
)
