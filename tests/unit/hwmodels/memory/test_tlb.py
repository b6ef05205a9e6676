"""Translation: closed forms against a simulated TLB, and its behaviour at the edges."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.gpus import GPUS
from hwmodels.memory.access import block_ids, block_visits, random_accesses, spread
from hwmodels.memory.fits import MEMORY_FITS
from hwmodels.memory.layout import KvLayout
from hwmodels.memory.set_associative import SetAssociativeCache
from hwmodels.memory.tlb import (
    kernel_visits,
    miss_share,
    missing,
    random_access_bytes_per_s,
    translation,
    walk_rate,
)
from hwmodels.memory.units import PAGE_BYTES

H200, HZ = MEMORY_FITS["h200_sxm"], GPUS["h200_sxm"].boost_hz
LLAMA_70B = {"element_bytes": 2.0, "head_dim": 128, "num_layers": 80}


def layout_of(pool_bytes, *, heads=1, block_tokens=16, pools="cross_layer", order="scattered"):
    one = KvLayout(block_tokens, kv_heads=heads, num_blocks=1, **LLAMA_70B)
    return replace(one, num_blocks=int(pool_bytes // one.block_bytes), pools=pools, order=order)


LAYOUTS = st.builds(
    KvLayout,
    block_tokens=st.sampled_from([1, 8, 16, 64, 256]),
    element_bytes=st.sampled_from([1.0, 2.0]),
    kv_heads=st.sampled_from([1, 3, 8]),
    head_dim=st.sampled_from([64, 128]),
    num_layers=st.sampled_from([1, 5, 80]),
    num_blocks=st.integers(1, 3000),
    pools=st.sampled_from(["per_layer", "cross_layer"]),
    order=st.sampled_from(["compact", "scattered"]),
)


@given(LAYOUTS, st.floats(0, 1))
def test_pages_of_compact_blocks_are_exact(layout, share):
    layout = replace(layout, order="compact")
    blocks = int(share * layout.num_blocks)
    layer = layout.num_layers // 2
    starts, size = block_visits(layout, layer, np.arange(blocks))
    pages = spread(starts, size, PAGE_BYTES) // PAGE_BYTES
    assert kernel_visits(layout, blocks, H200).pages == np.unique(pages).size


@pytest.mark.parametrize("pools", ["per_layer", "cross_layer"])
def test_pages_of_scattered_blocks_are_the_mean(pools):
    """40 draws: within 1 %, and the page that keys and values may share."""
    rng = np.random.default_rng(0)
    layout = layout_of(4e9, pools=pools)
    draws = []
    for _ in range(40):
        starts, size = block_visits(layout, 40, block_ids(layout, 900, rng))
        draws.append(np.unique(spread(starts, size, PAGE_BYTES)).size)
    assert kernel_visits(layout, 900, H200).pages == pytest.approx(np.mean(draws), rel=0.01, abs=1)


@pytest.mark.parametrize("beyond", [1.1, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("sub_entries", [1, 4, 16])
@pytest.mark.parametrize("ways", [8, 256])
def test_misses_of_random_visits_agree_with_the_simulator(beyond, sub_entries, ways):
    """After warming up within 3 points; 8-way sets at the very edge within 13.

    There some sets overflow and others do not, as the hash has it.
    """
    rng = np.random.default_rng(7)
    tlb = SetAssociativeCache(256 // ways, ways, PAGE_BYTES, sub_entries, hashed=ways < 256)
    footprint = int(beyond * 256) * sub_entries * PAGE_BYTES
    tlb.access(random_accesses(footprint, PAGE_BYTES, 12_000, rng))
    trace = random_accesses(footprint, PAGE_BYTES, 24_000, rng)
    share = tlb.misses(trace) / trace.size
    near = 0.13 if ways == 8 and beyond < 1.5 else 0.03
    assert miss_share(footprint, tlb.reach_bytes, sub_entries) == pytest.approx(share, abs=near)


def test_block_reads_of_a_kernel_agree_with_the_simulator():
    """A scattered cross-layer pool twice the reach, layer after layer: walks within 3 %."""
    rng = np.random.default_rng(2)
    fit = replace(H200, tlb_l3_reach_bytes=float(2**30), tlb_entry_pages=16)
    layout = layout_of(2 * 2**30)
    tlb = SetAssociativeCache(4, 8, PAGE_BYTES, 16, hashed=True)
    assert tlb.reach_bytes == fit.tlb_l3_reach_bytes
    blocks = block_ids(layout, layout.num_blocks // 2, rng)
    walks, visits = 0, 0
    for layer in range(12):
        starts, _ = block_visits(layout, layer, rng.permutation(blocks))
        missed = tlb.misses(starts)
        if layer >= 2:
            walks, visits = walks + missed, visits + starts.size
    found = translation(layout, blocks.size, replace(fit, tlb_l2_reach_bytes=1e6), HZ)
    assert found.walks / found.visits.visits == pytest.approx(walks / visits, rel=0.03)


@given(LAYOUTS, st.floats(0, 1))
def test_levels_miss_in_order_and_never_more_than_visits(layout, share):
    found = translation(layout, share * layout.num_blocks, H200, HZ)
    assert 0 <= found.walks <= found.l2_misses <= found.l1_misses <= found.visits.visits + 1e-9
    assert found.seconds >= 0


@given(LAYOUTS, st.floats(0, 1))
def test_what_is_read_is_conserved(layout, share):
    blocks = share * layout.num_blocks
    found = kernel_visits(layout, blocks, H200)
    assert found.visits * found.bytes_per_visit == pytest.approx(blocks * layout.layer_block_bytes)


@given(LAYOUTS, st.floats(0, 1))
def test_nothing_is_added_within_two_gigabytes(layout, share):
    """Where no chase shows a step, a kernel that reads at most at peak bandwidth pays nothing."""
    blocks = share * layout.num_blocks
    if layout.slab_bytes > 2e9 or not blocks:
        return
    base_s = blocks * layout.layer_block_bytes / GPUS["h200_sxm"].hbm_bytes_per_s
    for fit in (H200, MEMORY_FITS["a100_sxm"]):
        assert translation(layout, blocks, fit, HZ).walks == 0
        assert translation(layout, blocks, fit, HZ).added_s(base_s + 8e-6) == 0


def test_only_what_outlasts_the_kernel_is_added():
    found = translation(layout_of(110e9), 100_000, H200, HZ)
    assert found.added_s(0.0) == found.seconds > 0
    assert found.added_s(found.seconds / 4) == pytest.approx(found.seconds * 3 / 4)
    assert found.added_s(2 * found.seconds) == 0


def test_a_kernel_at_the_cap_takes_what_its_walks_take():
    layout = layout_of(110e9)
    found = translation(layout, 100_000, H200, HZ)
    read = 100_000 * layout.layer_block_bytes
    assert found.walker_s == pytest.approx(read / found.cap_bytes_per_s)
    assert found.seconds >= found.walker_s


@pytest.mark.parametrize("just", [0.999, 1.001])
def test_the_reach_is_a_limit(just):
    reach = H200.tlb_l3_reach_bytes
    assert (miss_share(just * reach, reach, 16) > 0) == (just > 1)


def test_larger_blocks_walk_less():
    times = [
        translation(layout_of(110e9, block_tokens=b), 1.5e6 / b, H200, HZ).walker_s
        for b in (8, 16, 32, 64)
    ]
    assert times == sorted(times, reverse=True)
    assert times[0] > 3 * times[2]


def test_unknown_constants_are_named_and_never_charged():
    unknown = replace(H200, tlb_l3_reach_bytes=None, walkers=None)
    assert missing(unknown) == ("tlb_l3_reach_bytes", "walkers")
    assert missing(H200) == ()
    assert walk_rate(unknown, HZ) is None
    found = translation(layout_of(110e9), 100_000, unknown, HZ)
    assert (found.walks, found.walker_s, found.cap_bytes_per_s) == (0, 0, None)
    dark = translation(layout_of(110e9), 100_000, replace(H200, dram_cycles=None), HZ)
    assert dark.latency_s == 0 < dark.walker_s
    assert missing(MEMORY_FITS["rtx_4090"]) == ("dram_cycles",)
    assert random_access_bytes_per_s(1e9, 128, replace(H200, stream_bytes_per_s=None), HZ) is None


def test_no_blocks_no_visits():
    assert kernel_visits(layout_of(1e9), 0, H200).visits == 0
    assert translation(layout_of(1e9), 0, H200, HZ).seconds == 0
