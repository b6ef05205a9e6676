"""Attention over random batches: paged, contiguous and oracle say the same."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kernels.attention.contiguous_decode import contiguous_decode
from kernels.attention.paged_decode import paged_decode
from kernels.attention.paged_prefill import paged_prefill
from kernels.dtypes import tolerance, torch_dtype
from kernels.judging import relative_error
from kernels.reference import attention

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LENGTHS = st.sampled_from([1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 255, 257, 1025])
BLOCKS = st.sampled_from([8, 16, 32, 64, 128, 256])
HEADS = st.sampled_from([(1, 1), (3, 1), (4, 2), (8, 1), (2, 2), (17, 1)])
DTYPES = st.sampled_from(["float16", "float32"])
# The interpreter is slow: shrinking a failure would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@dataclass
class Contexts:
    """Sequences' keys and values as they are, and in a paged cache with NaN all around."""

    keys: list
    values: list
    key_cache: torch.Tensor
    value_cache: torch.Tensor
    tables: torch.Tensor
    lens: torch.Tensor


def contexts(lengths, kv_heads, dim, block, kind, *, shared=0, seed=3):
    """Make sequences whose first `shared` tokens, whole blocks of them, are the same blocks."""
    random = torch.Generator(DEVICE).manual_seed(seed)

    def draw(tokens):
        sizes = (tokens, kv_heads, dim)
        return torch.randn(sizes, generator=random, device=DEVICE, dtype=kind)

    common = min([shared, *lengths]) // block * block if lengths else 0
    heads = draw(common), draw(common)
    keys, values = ([torch.cat((head, draw(n - common))) for n in lengths] for head in heads)
    counts = [-(-n // block) for n in lengths]
    pool = sum(counts) + 2
    free = torch.randperm(pool - 1, generator=torch.Generator().manual_seed(seed)).tolist()
    own = [free.pop() for _ in range(common // block)]
    # The last block of the pool is nobody's; tables name it beyond each context.
    tables = torch.full((len(lengths), max([1, *counts])), pool - 1, dtype=torch.int32)
    caches = torch.full((2, pool, block, kv_heads, dim), float("nan"), dtype=kind, device=DEVICE)
    for seq, count in enumerate(counts):
        blocks = own + [free.pop() for _ in range(count - len(own))]
        tables[seq, :count] = torch.tensor(blocks, dtype=torch.int32)
        for cache, rows in zip(caches, (keys[seq], values[seq]), strict=True):
            for number, at in enumerate(blocks):
                some = rows[number * block : (number + 1) * block]
                cache[at, : len(some)] = some
    lens = torch.tensor(lengths, dtype=torch.int32, device=DEVICE)
    return Contexts(keys, values, caches[0], caches[1], tables.to(DEVICE), lens)


def contiguous(rows, most):
    result = torch.full((len(rows), most, *rows[0].shape[1:]), float("nan"), dtype=rows[0].dtype)
    result = result.to(DEVICE)
    for seq, some in enumerate(rows):
        result[seq, : len(some)] = some
    return result


def oracle(query, made, scale):
    parts = [
        attention(query[seq : seq + 1], key, value, scale)
        for seq, (key, value) in enumerate(zip(made.keys, made.values, strict=True))
    ]
    return torch.cat(parts)


@settings(max_examples=20, deadline=None, phases=PHASES, derandomize=True)
@given(
    lengths=st.lists(LENGTHS, min_size=1, max_size=3),
    heads=HEADS,
    dim=st.sampled_from([64, 128, 256]),
    block=BLOCKS,
    dtype=DTYPES,
    splits=st.sampled_from([1, 2, 5]),
    shared=st.sampled_from([0, 64, 256]),
)
def test_paged_decode_contiguous_decode_and_oracle_agree(
    lengths, heads, dim, block, dtype, splits, shared
):
    (query_heads, kv_heads), kind = heads, torch_dtype(dtype)
    made = contexts(lengths, kv_heads, dim, block, kind, shared=shared)
    random = torch.Generator(DEVICE).manual_seed(4)
    query = torch.randn(len(lengths), query_heads, dim, generator=random, device=DEVICE, dtype=kind)
    paged, plain = torch.full_like(query, float("nan")), torch.full_like(query, float("nan"))
    paged_decode(
        query, made.key_cache, made.value_cache, made.tables, made.lens,
        num_splits=splits, out=paged,
    )  # fmt: skip
    most = max(lengths) + 3
    key, value = contiguous(made.keys, most), contiguous(made.values, most)
    contiguous_decode(query, key, value, made.lens, num_splits=splits, out=plain)
    wanted = oracle(query, made, dim**-0.5)
    assert relative_error(paged, wanted) <= tolerance(dtype)
    assert relative_error(plain, wanted) <= tolerance(dtype)
    assert relative_error(paged, plain.double()) <= tolerance(dtype)


@settings(max_examples=12, deadline=None, phases=PHASES, derandomize=True)
@given(
    chunks=st.lists(
        st.tuples(st.sampled_from([0, 1, 2, 15, 33, 65]), st.sampled_from([0, 1, 63, 64, 129])),
        min_size=1,
        max_size=3,
    ),
    heads=st.sampled_from([(1, 1), (3, 1), (4, 2)]),
    dim=st.sampled_from([64, 128]),
    block=BLOCKS,
    dtype=DTYPES,
)
def test_chunks_of_a_prefill_equal_the_oracle(chunks, heads, dim, block, dtype):
    (query_heads, kv_heads), kind = heads, torch_dtype(dtype)
    queries = [count for count, _ in chunks]
    made = contexts([sum(chunk) for chunk in chunks], kv_heads, dim, block, kind)
    starts = torch.tensor([0, *queries]).cumsum(0).to(torch.int32).to(DEVICE)
    random = torch.Generator(DEVICE).manual_seed(5)
    padded = sum(queries) + 2  # as where a CUDA graph has room for more
    query = torch.randn(padded, query_heads, dim, generator=random, device=DEVICE, dtype=kind)
    out = torch.full_like(query, float("nan"))
    paged_prefill(query, made.key_cache, made.value_cache, made.tables, starts, made.lens, out=out)
    wanted = [
        attention(query[starts[seq] : starts[seq + 1]], key, value, dim**-0.5)
        for seq, (key, value) in enumerate(zip(made.keys, made.values, strict=True))
    ]
    assert relative_error(out[:-2], torch.cat(wanted)) <= tolerance(dtype)
    assert out[-2:].isnan().all()


def test_one_chunk_and_two_of_it_give_the_same_prefill():
    made = contexts([150], 1, 64, 16, torch.float32)
    query = torch.randn(150, 2, 64, device=DEVICE)
    starts = torch.tensor([0, 150], dtype=torch.int32, device=DEVICE)
    caches = (made.key_cache, made.value_cache, made.tables)
    whole = paged_prefill(query, *caches, starts, made.lens)
    first = torch.tensor([0, 70], dtype=torch.int32, device=DEVICE)
    early = paged_prefill(query[:70], *caches, first, first[1:])
    late = paged_prefill(query[70:], *caches, starts - starts.clamp(max=70), made.lens)
    assert relative_error(torch.cat((early, late)), whole.double()) <= tolerance("float32")


def test_the_last_query_of_a_prefill_is_a_decode():
    made = contexts([129, 64], 2, 64, 32, torch.float32)
    query = torch.randn(2, 4, 64, device=DEVICE)
    caches = (made.key_cache, made.value_cache, made.tables)
    starts = torch.arange(3, dtype=torch.int32, device=DEVICE)
    prefill = paged_prefill(query, *caches, starts, made.lens, max_query_tokens=1)
    decode = paged_decode(query, *caches, made.lens)
    assert relative_error(prefill, decode.double()) <= tolerance("float32")


@pytest.mark.parametrize("splits", [1, 4])
def test_a_batch_of_nobody_and_a_context_of_nothing(splits):
    made = contexts([3], 1, 64, 8, torch.float16)
    caches = (made.key_cache, made.value_cache)
    query = torch.randn(1, 2, 64, device=DEVICE).half()
    nobody = paged_decode(query[:0], *caches, made.tables[:0], made.lens[:0], num_splits=splits)
    assert nobody.shape == (0, 2, 64)
    nothing = paged_decode(query, *caches, made.tables, made.lens * 0, num_splits=splits)
    assert torch.equal(nothing, torch.zeros_like(nothing))
    starts = torch.zeros(2, dtype=torch.int32, device=DEVICE)
    assert paged_prefill(query[:0], *caches, made.tables, starts, made.lens).shape == (0, 2, 64)


def test_strided_queries_outputs_and_caches_are_taken_as_they_are():
    made = contexts([65, 17], 2, 64, 16, torch.float32)
    qkv = torch.randn(2, 8, 64, device=DEVICE)
    query, out = qkv[:, :4], torch.full((2, 5, 64), float("nan"), device=DEVICE)[:, 1:]
    plain = paged_decode(
        query.contiguous(), made.key_cache, made.value_cache, made.tables, made.lens
    )
    # Keys and values of a block side by side, as some engines keep them.
    both = torch.stack((made.key_cache, made.value_cache), dim=1)
    paged_decode(query, both[:, 0], both[:, 1], made.tables, made.lens, num_splits=2, out=out)
    assert relative_error(out, plain.double()) <= tolerance("float32")
