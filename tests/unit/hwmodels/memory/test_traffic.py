"""Sectors, lines and bytes that KV reads move: against counting addresses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.memory.access import head_rows, spread, strided
from hwmodels.memory.dram import (
    block_sector_efficiency,
    decode_dram_bytes,
    exposed_latency_s,
    head_traffic,
    loads_to_saturate,
    tail_traffic,
    traffic,
)
from hwmodels.memory.layout import KvLayout
from hwmodels.memory.set_associative import SetAssociativeCache
from hwmodels.memory.touched import Segments
from hwmodels.memory.units import LINE_BYTES, SECTOR_BYTES

HEADS = st.builds(
    KvLayout,
    block_tokens=st.integers(1, 40),
    element_bytes=st.sampled_from([0.5, 1.0, 2.0]),
    kv_heads=st.integers(1, 8),
    head_dim=st.sampled_from([16, 32, 64, 128, 256]),
    num_layers=st.just(1),
    num_blocks=st.just(1),
    arrangement=st.sampled_from(["NHD", "HND"]),
)


@given(HEADS, st.data())
def test_a_heads_sectors_and_lines_are_exact(layout, data):
    head = data.draw(st.integers(0, layout.kv_heads - 1))
    rows = head_rows(layout, 0, np.array([0]), layout.block_tokens, head)[::2]  # keys
    found = head_traffic(layout, head)
    for grain, told in ((SECTOR_BYTES, found.sectors), (LINE_BYTES, found.lines)):
        assert told == np.unique(spread(rows, layout.row_bytes, grain)).size


@given(HEADS, st.data())
def test_what_leaves_dram_for_a_last_block_is_exact(layout, data):
    tokens = data.draw(st.integers(1, layout.block_tokens))
    heads = range(layout.kv_heads)
    rows = np.concatenate([head_rows(layout, 0, np.array([0]), tokens, h)[::2] for h in heads])
    assert (
        tail_traffic(layout, tokens).sectors
        == np.unique(spread(rows, layout.row_bytes, SECTOR_BYTES)).size
    )


@given(HEADS)
def test_a_simulated_cache_misses_as_many_sectors(layout):
    """Cold, large enough, every row of a head read twice: each sector comes once."""
    rows = head_rows(layout, 0, np.array([0]), layout.block_tokens, 0)[::2]
    reads = np.tile(spread(rows, layout.row_bytes, SECTOR_BYTES), 2)
    cache = SetAssociativeCache(64, 64, SECTOR_BYTES, sub_entries=4)
    assert cache.misses(reads) == head_traffic(layout).sectors


@given(HEADS)
def test_efficiencies_are_shares(layout):
    found = head_traffic(layout)
    assert 0 < found.line_efficiency <= found.sector_efficiency <= 1
    if layout.row_bytes % SECTOR_BYTES == 0:
        assert found.sector_efficiency == 1
    assert 0 < block_sector_efficiency(layout) <= 1


def layout_of(element_bytes, head_dim, arrangement, group=0):
    return KvLayout(
        16, element_bytes, 8, head_dim, 1, 1, arrangement,
        group_elements=group, scale_bytes=4 if group else 0,
    )  # fmt: skip


@pytest.mark.parametrize("arrangement", ["NHD", "HND"])
def test_a_row_below_a_sector_wastes_only_between_other_heads(arrangement):
    """head_dim 32 in 4 bits: 16 bytes a row."""
    efficiency = head_traffic(layout_of(0.5, 32, arrangement)).sector_efficiency
    assert efficiency == {"NHD": 0.5, "HND": 1.0}[arrangement]


def test_scales_apart_waste_sectors_where_tokens_come_first():
    """head_dim 128 int4 in groups of 32: 64 bytes of codes and 16 of scales a row."""
    assert head_traffic(layout_of(0.5, 128, "NHD", 32)).sector_efficiency == pytest.approx(80 / 96)
    assert head_traffic(layout_of(0.5, 128, "HND", 32)).sector_efficiency == 1.0


def test_nothing_moves_for_nothing():
    nothing = traffic(Segments(0, 1, 1))
    assert (nothing.sectors, nothing.sector_efficiency, nothing.line_efficiency) == (0, 1, 1)


@pytest.mark.parametrize("tokens", [0, 17])
def test_a_last_block_holds_some_tokens(tokens):
    with pytest.raises(ValueError, match="of 16"):
        tail_traffic(layout_of(2.0, 128, "NHD"), tokens)


def test_latency_is_shared_by_loads_in_flight():
    one = exposed_latency_s(690, 1, 1.98e9)
    assert one == pytest.approx(348e-9, rel=0.01)
    assert exposed_latency_s(690, 16, 1.98e9) == pytest.approx(one / 16)
    with pytest.raises(ValueError, match="at least 1"):
        exposed_latency_s(690, 0, 1.98e9)
    assert loads_to_saturate(4e12, 348e-9) == pytest.approx(10875)


def test_strides_of_a_line_touch_one_each():
    assert np.unique(strided(9, 128, 64) // LINE_BYTES).size == 9


@pytest.mark.parametrize("arrangement", ["NHD", "HND"])
def test_a_step_reads_whole_blocks_and_the_used_part_of_last_ones_from_dram(arrangement):
    plain = KvLayout(16, 2, 8, 128, 32, 100, arrangement=arrangement)
    token = 2 * 8 * 256
    assert decode_dram_bytes(plain, [16, 40, 7, 7]) == 70 * token
    assert decode_dram_bytes(plain, []) == 0
    assert decode_dram_bytes(replace(plain, tensors=1), [40]) == 20 * token


def test_scales_and_cut_sectors_leave_dram_too():
    int4 = KvLayout(16, 0.5, 1, 128, 32, 100, group_elements=32, scale_bytes=4)
    # Rows of 64 B are whole sectors; scales of 16 B a token share them by two.
    assert decode_dram_bytes(int4, [16]) == 2 * 16 * (64 + 16)
    assert decode_dram_bytes(int4, [17]) == 2 * (16 * (64 + 16) + 64 + SECTOR_BYTES)
