"""The models against figures that are published or measured, each with its spread.

Micro-benchmarks: gpu-benches and mt4g logs (A100, GH200). Others are arithmetic anyone can redo.
"""

from dataclasses import replace

import pytest

from hwmodels.gpus import GPUS
from hwmodels.memory.alignment import (
    alignment_class,
    alignment_speed,
    lines_per_request,
    sectors_per_request,
)
from hwmodels.memory.chase import chase_latency
from hwmodels.memory.dram import exposed_latency_s, head_traffic
from hwmodels.memory.fits import MEMORY_FITS
from hwmodels.memory.layout import KvLayout
from hwmodels.memory.shared_memory import conflict_degree, conflicts_per_cycle_limit, tile_bytes
from hwmodels.memory.tiles import pad_ratio, padded, tail_waste, tiles
from hwmodels.memory.tlb import page_crossing_share, random_access_bytes_per_s, translation
from hwmodels.memory.units import PAGE_BYTES

A100, H100, H200 = (GPUS[name] for name in ("a100_sxm", "h100_sxm", "h200_sxm"))
FITS = MEMORY_FITS
MB, GB = 1e6, 1e9
# GH200's L2 has 60 MiB where H100's has 50.
GH200 = replace(H100, l2_bytes=60 * 2**20)


def chase(megabytes, gpu, stride=128):
    return chase_latency(megabytes * MB, stride, FITS[gpu.name], gpu).cycles


def test_a100_reaches_64_gb_and_no_further():
    def rate(gigabytes):
        return random_access_bytes_per_s(gigabytes * GB, 128, FITS["a100_sxm"], A100.boost_hz)

    full = FITS["a100_sxm"].stream_bytes_per_s
    assert [rate(window) for window in (1, 16, 40, 63.9, 64)] == [full] * 5
    beyond = [rate(window) for window in (65, 70, 79)]
    assert beyond[0] < full
    assert beyond == sorted(beyond, reverse=True)


def test_the_reach_is_what_its_entries_hold():
    """2048 entries of 16 pages of 2 MiB are 64 GiB: consistent with the window of 64 GB."""
    fit = FITS["a100_sxm"]
    entries = 2048 * fit.tlb_entry_pages * fit.page_bytes
    assert entries == pytest.approx(fit.tlb_l3_reach_bytes, rel=0.08)
    assert fit.tlb_l1_reach_bytes == 32 * 2**20  # Volta's and Turing's 32 MB


@pytest.mark.parametrize(
    ("gpu", "megabytes", "cycles", "spread"),
    [
        # 0.15 to 2.25 GB: +0.3 % on A100, +1.3 % on GH200.
        (A100, 150, 550.5, 0.003),
        (A100, 2250, 552.4, 0.003),
        (GH200, 150, 680, 0.015),
        (GH200, 2250, 689, 0.015),
    ],
)
def test_chases_are_flat_below_two_gigabytes(gpu, megabytes, cycles, spread):
    assert chase(megabytes, gpu) == pytest.approx(cycles, rel=spread)


@pytest.mark.parametrize(
    ("gpu", "megabytes", "low", "high"),
    [
        (A100, 1, 205, 205),
        (A100, 16, 205, 205),
        (A100, 24, 390, 406),
        (A100, 31, 390, 406),
        (A100, 38, 390, 406),
        (A100, 48, 550, 552.5),
        (A100, 500, 550, 552.5),
        (GH200, 1, 219, 291),
        (GH200, 20, 219, 291),
        (GH200, 37, 490, 520),
        (GH200, 45, 490, 520),
        (GH200, 55, 490, 520),
        (GH200, 75, 680, 700),
        (GH200, 1000, 680, 700),
        (GPUS["l40s"], 20, 222, 339),  # with the position of the SM
        (GPUS["l40s"], 60, 222, 339),  # no far plateau was seen
        (GPUS["l40s"], 400, 625, 625),
    ],
)
def test_latency_plateaus(gpu, megabytes, low, high):
    assert low <= chase(megabytes, gpu) <= high


def test_the_far_half_costs_what_is_published():
    a100, hopper = FITS["a100_sxm"], FITS["h100_sxm"]
    assert 185 <= a100.l2_far_cycles - a100.l2_near_cycles <= 201  # about 190-200
    assert hopper.l2_far_cycles - hopper.l2_near_cycles == pytest.approx(220, rel=0.05)
    assert exposed_latency_s(a100.dram_cycles, 1, A100.boost_hz) == pytest.approx(391e-9, rel=0.01)
    assert exposed_latency_s(hopper.dram_cycles, 1, H100.boost_hz) == pytest.approx(
        348e-9, rel=0.01
    )


def test_page_strides_show_translation_alone():
    """One line a page stays in the L2: steps at 32 MB, the L2 TLB's reach and A100's 64 GB."""
    at = {gb: chase(1000 * gb, A100, PAGE_BYTES) for gb in (0.02, 0.05, 4, 30, 80)}
    assert at[0.02] == 205
    assert 0 < at[0.05] - at[0.02] <= 10
    assert at[4] == at[0.05]
    assert 50 <= at[30] - at[4] <= 150
    assert 300 <= at[80] - at[30] <= 700


def test_a_stride_below_a_sector_waits_for_dram_once_a_sector():
    quarter = chase(500, A100, 8)
    assert quarter == pytest.approx((3 * 398 + 551) / 4)
    assert chase(500, A100, 32) == pytest.approx(551)


@pytest.mark.parametrize("stride", [32, 64, 96, 128, 1024])
def test_a_column_of_whole_rows_of_banks_is_32_way(stride):
    assert conflict_degree(stride) == 32


@pytest.mark.parametrize("stride", [1, 33, 129])
def test_a_pad_of_one_word_has_no_conflict(stride):
    assert conflict_degree(stride) == 1


def test_more_conflicts_a_cycle_than_this_cannot_be():
    assert conflicts_per_cycle_limit(H100.num_sms) == 4224  # about 4,200 on 132 SMs


@pytest.mark.parametrize(
    ("leading", "width", "speed"),
    [(1024, 16, 1.0), (1032, 16, 1.0), (1028, 8, 0.95), (1026, 4, 0.6), (1025, 2, 0.35)],
)
def test_classes_of_a_leading_dimension_in_16_bits(leading, width, speed):
    assert alignment_class(leading, 2) == width
    assert alignment_speed(width, FITS["h100_sxm"].alignment_speed) == speed


def test_the_rule_is_eight_elements_not_32():
    fast = [ld for ld in range(1024, 1057) if alignment_class(ld, 2) == 16]
    assert fast == [1024, 1032, 1040, 1048, 1056]


@pytest.mark.parametrize(
    ("length", "tile", "percent"), [(397, 512, 29), (601, 640, 6.5), (1024, 1024, 0)]
)
def test_tiles_of_128_over_a_length(length, tile, percent):
    assert padded(length) == tile
    assert 100 * pad_ratio(length) == pytest.approx(percent, abs=0.1)


def test_the_token_after_a_tile_costs_one_more():
    assert [tiles(m, 128) for m in (255, 256, 257)] == [2, 2, 3]
    assert tiles(1025, 128) / tiles(1024, 128) - 1 == 0.125  # at most 12.5 %


def test_the_tail_of_397_tokens():
    assert 100 * tail_waste(397, 16) == pytest.approx(0.75, abs=0.01)


def test_one_access_in_16384_crosses_a_page():
    assert page_crossing_share(128, PAGE_BYTES) == 1 / 16_384
    assert page_crossing_share(128, 4096) == 1 / 32


def test_an_offset_of_64_bytes_doubles_lines_and_leaves_sectors():
    assert (lines_per_request(0), lines_per_request(64)) == (1, 2)
    assert (sectors_per_request(0), sectors_per_request(64)) == (4, 4)


@pytest.mark.parametrize("tokens", [1, 16, 397])
def test_a_row_of_128_numbers_in_16_bits_is_eight_whole_sectors(tokens):
    layout = KvLayout(tokens, 2.0, 8, 128, 1, 1)
    found = head_traffic(layout)
    assert (found.sectors / tokens, found.sector_efficiency) == (8, 1.0)


def llama_70b(pool_bytes, heads, **more):
    one = KvLayout(16, 2.0, heads, 128, 80, 1)
    return replace(one, num_blocks=int(pool_bytes // one.block_bytes), **more)


@pytest.mark.parametrize(("heads", "visit"), [(8, 64), (1, 8)])
def test_bytes_of_a_page_visit(heads, visit):
    """Llama-70B, 16-token blocks, 16 bits: 64 KB at TP 1, 8 KB at TP 8."""
    layout = llama_70b(100 * GB, heads, pools="cross_layer")
    assert layout.bytes_per_page_visit == visit * 2**10


def added_s(layout, gpu=H200):
    fit = FITS[gpu.name]
    read = layout.num_blocks * layout.layer_block_bytes
    found = translation(layout, layout.num_blocks, fit, gpu.boost_hz)
    return found.added_s(read / fit.stream_bytes_per_s), read / fit.stream_bytes_per_s


@pytest.mark.parametrize("heads", [8, 1])
@pytest.mark.parametrize("order", ["compact", "scattered"])
def test_llama_70b_with_a_pool_of_100_gb_a_tensor_a_layer_pays_nothing(heads, order):
    layout = llama_70b(100 * GB, heads, order=order)
    assert layout.slab_bytes == pytest.approx(1.25 * GB, rel=0.01)
    assert added_s(layout)[0] == 0


def test_the_same_pool_across_layers_leaves_the_reach():
    """At TP 8, where a visit brings 8 KB, translation outlasts the reads; at TP 1 by less."""
    shares = []
    for heads in (1, 8):
        more, read_s = added_s(llama_70b(100 * GB, heads, pools="cross_layer", order="scattered"))
        shares.append(more / read_s)
    assert shares[0] > 0.5
    assert shares[0] > 2 * shares[1]


@pytest.mark.parametrize("gigabytes", [1, 20, 60])
@pytest.mark.parametrize("heads", [8, 1])
def test_pools_within_the_reach_pay_nothing(gigabytes, heads):
    layout = llama_70b(gigabytes * GB, heads, pools="cross_layer", order="scattered")
    assert added_s(layout)[0] == 0
    assert added_s(layout, A100)[0] == 0


def test_tiles_against_shared_memory():
    """512 × 128 in 16 bits fits A100; 1024 × 256 fits nothing."""
    a100, h100 = (FITS[g].shared_bytes_per_block for g in ("a100_sxm", "h100_sxm"))
    assert 512 * 128 * 2 == 128 * 2**10 <= a100
    assert a100 < 2 * 512 * 128 * 2  # keys and values together
    assert h100 < 1024 * 256 * 2
    assert tile_bytes(3, (128, 256, 64), 2) <= h100
