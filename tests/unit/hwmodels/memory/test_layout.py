"""Where KV lies: addresses against real arrays, sizes against published fragments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.memory.access import block_ids, block_visits, decode_rows, head_rows
from hwmodels.memory.layout import KvLayout
from hwmodels.memory.units import PAGE_BYTES

LAYOUTS = st.builds(
    KvLayout,
    block_tokens=st.integers(1, 5),
    element_bytes=st.just(1.0),
    kv_heads=st.integers(1, 3),
    head_dim=st.integers(1, 4),
    num_layers=st.integers(1, 3),
    num_blocks=st.integers(1, 4),
    arrangement=st.sampled_from(["NHD", "HND"]),
    pools=st.sampled_from(["per_layer", "cross_layer"]),
    tensors=st.sampled_from([1, 2]),
)


def all_rows(layout):
    return [
        layout.address(layer, block, tensor, token, head)
        for layer in range(layout.num_layers)
        for block in range(layout.num_blocks)
        for tensor in range(layout.tensors)
        for token in range(layout.block_tokens)
        for head in range(layout.kv_heads)
    ]


@given(LAYOUTS)
def test_rows_never_overlap(layout):
    rows = np.sort(all_rows(layout))
    assert (np.diff(rows) >= layout.row_bytes).all()


@given(LAYOUTS)
def test_addresses_are_those_of_an_array_of_that_shape(layout):
    """NumPy lays out the same array, in C order."""
    inner = (layout.block_tokens, layout.kv_heads)
    if layout.arrangement == "HND":
        inner = inner[::-1]
    outer = (
        (layout.tensors, layout.num_blocks)
        if layout.pools == "per_layer"
        else (layout.num_blocks, layout.num_layers, layout.tensors)
    )
    array = np.empty((*outer, *inner, layout.head_dim), dtype=np.uint8)
    rng = np.random.default_rng(0)
    for _ in range(5):
        layer, block, tensor, token, head = (
            int(rng.integers(n))
            for n in (layout.num_layers, layout.num_blocks, layout.tensors, *inner)
        )
        if layout.arrangement == "HND":
            token, head = head, token
        place = (tensor, block) if layout.pools == "per_layer" else (block, layer, tensor)
        row = (token, head) if layout.arrangement == "NHD" else (head, token)
        at = int(np.dot((*place, *row), array.strides[:-1]))
        slab = layout.address(layer, 0, 0, 0, 0) if layout.pools == "per_layer" else 0
        assert layout.address(layer, block, tensor, token, head) - slab == at


@given(LAYOUTS)
def test_the_pieces_of_a_layer_are_its_rows(layout):
    for layer in range(layout.num_layers):
        blocks = np.arange(layout.num_blocks)
        starts, size = block_visits(layout, layer, blocks)
        held = {byte for s in starts.tolist() for byte in range(s, s + size)}
        lengths = [layout.num_blocks * layout.block_tokens]
        rows = decode_rows(layout, layer, [blocks], lengths)
        read = {byte for r in rows.tolist() for byte in range(r, r + layout.row_bytes)}
        assert held == read


@given(LAYOUTS)
def test_sizes_add_up(layout):
    assert layout.pool_bytes == layout.num_blocks * layout.block_bytes
    assert len(all_rows(layout)) * layout.row_bytes == layout.pool_bytes
    parts = layout.num_layers if layout.pools == "per_layer" else 1
    assert layout.slab_bytes * parts == layout.pool_bytes


@given(LAYOUTS)
def test_rows_of_a_head_are_where_the_addresses_say(layout):
    for head in range(layout.kv_heads):
        rows = layout.rows_of_head(head)
        first = layout.address(0, 0, 0, 0, 0)
        found = [layout.address(0, 0, 0, t, head) - first for t in range(layout.block_tokens)]
        assert found == [rows.start + t * rows.stride for t in range(layout.block_tokens)]


def test_layers_begin_on_a_page():
    layout = KvLayout(16, 2.0, 8, 128, 3, 1000)
    assert [layout.address(n, 0, 0, 0, 0) % PAGE_BYTES for n in range(3)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("network", "heads", "dim", "layers", "before", "after"),
    [
        ("Llama-3.1-8B", 8, 128, 32, 32 * 2**10, 2 * 2**20),
        ("Llama-3.1-70B, TP4", 2, 128, 80, 8 * 2**10, 1.25 * 2**20),
        ("Llama-3.2-1B", 8, 64, 16, 16 * 2**10, 0.5 * 2**20),
    ],
)
def test_fragments_are_those_published_for_vllm(network, heads, dim, layers, before, after):
    """Contiguous bytes of a 16-token block, vLLM 0.11 (a tensor a layer) and 0.12 (all layers)."""
    sizes = [
        KvLayout(16, 2.0, heads, dim, layers, 10, pools=pools).fragment_bytes
        for pools in ("per_layer", "cross_layer")
    ]
    assert sizes == [before, after]


def test_int4_keeps_its_scales_apart():
    layout = KvLayout(16, 0.5, 8, 128, 2, 10, group_elements=32, scale_bytes=4)
    assert (layout.row_bytes, layout.row_scale_bytes) == (64, 16)
    bits = 8 * (layout.row_bytes + layout.row_scale_bytes) / layout.head_dim
    assert bits == 5.0  # effective bits of groups of 32 with scale and zero point


@pytest.mark.parametrize(
    "wrong",
    [
        {"block_tokens": 0},
        {"pools": "pages"},
        {"order": "any"},
        {"arrangement": "DNH"},
        {"head_dim": 3, "element_bytes": 0.5},
        {"group_elements": 48, "scale_bytes": 2},
    ],
)
def test_layouts_that_cannot_be_are_refused(wrong):
    given_ = {
        "block_tokens": 16,
        "element_bytes": 2.0,
        "kv_heads": 1,
        "head_dim": 64,
        "num_layers": 1,
        "num_blocks": 4,
    }
    with pytest.raises(ValueError, match=r" is | divide "):
        KvLayout(**{**given_, **wrong})


def test_compact_blocks_are_the_lowest_and_scattered_ones_any():
    rng = np.random.default_rng(0)
    compact = KvLayout(16, 2.0, 1, 64, 1, 100)
    assert block_ids(compact, 5, rng).tolist() == [0, 1, 2, 3, 4]
    scattered = block_ids(KvLayout(16, 2.0, 1, 64, 1, 100, order="scattered"), 50, rng)
    assert len(set(scattered.tolist())) == 50
    assert scattered.max() > 60
    with pytest.raises(ValueError, match="pool of 100"):
        block_ids(compact, 101, rng)


def test_a_sequence_reads_keys_and_values_of_its_tokens_only():
    layout = KvLayout(4, 2.0, 2, 8, 1, 9)
    rows = head_rows(layout, 0, np.array([3, 1]), 6, 1)
    assert rows.size == 12
    assert rows[0] == layout.address(0, 3, 0, 0, 1)
    assert rows[-1] == layout.address(0, 1, 1, 1, 1)
