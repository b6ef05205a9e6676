"""Decode attention is right for one query and every context length modulo a tile and 128."""

import pytest
import torch

from kernels.attention.batches import normal, paged_batch
from kernels.attention.paged_decode import paged_decode
from kernels.attention.paged_prefill import PrefillConfig, paged_prefill
from kernels.dtypes import tolerance, torch_dtype
from kernels.judging import relative_error
from kernels.reference import paged_attention

ALL = tuple(range(1, 257))
"""1 to 128 and 129 to 256: each remainder twice, in one launch."""
LONGER = tuple(range(129, 257))


def batch(lengths, heads, dim, block, dtype, device):
    made = paged_batch(lengths, block, seed=11)
    draw = normal(torch_dtype(dtype), device, 11)
    query = draw(len(lengths), heads, dim)
    caches = [draw(made.blocks, block, 1, dim) for _ in range(2)]
    for cache in caches:
        made.poison(cache, float("nan"))
    lens, tables = made.context_lens(device), made.tables.to(device)
    starts = torch.arange(len(lengths) + 1, dtype=torch.int32)
    wanted = paged_attention(query, *caches, made.tables, starts, lens, dim**-0.5)
    return (query, *caches, tables), starts.to(device), lens, wanted


def wrong_lengths(lengths, out, wanted, dtype):
    rows = zip(lengths, out, wanted, strict=True)
    return [n for n, row, want in rows if relative_error(row, want) > tolerance(dtype)]


@pytest.mark.parametrize(
    ("lengths", "dim", "block", "dtype", "splits"),
    [
        pytest.param(ALL, 64, 16, "float16", 1, id="float16"),
        pytest.param(LONGER, 64, 128, "float32", 1, id="float32"),
        pytest.param(LONGER[::2], 128, 32, "float16", 2, id="float16-split"),
    ],
)
def test_every_length_modulo_128(lengths, dim, block, dtype, splits, device):
    inputs, _, lens, wanted = batch(lengths, 1, dim, block, dtype, device)
    out = torch.full_like(inputs[0], float("nan"))
    paged_decode(*inputs, lens, num_splits=splits, out=out)
    assert wrong_lengths(lengths, out, wanted, dtype) == []


def test_lengths_by_the_prefill_kernel_of_one_query(device):
    lengths = LONGER[::4]
    inputs, starts, lens, wanted = batch(lengths, 2, 64, 16, "float16", device)
    out = torch.full_like(inputs[0], float("nan"))
    config = PrefillConfig(rows=16, tile_tokens=128, warps=4, stages=3)
    paged_prefill(*inputs, starts, lens, max_query_tokens=1, out=out, config=config)
    assert wrong_lengths(lengths, out, wanted, "float16") == []
