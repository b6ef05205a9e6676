"""Attention priced over a KV layout: what is charged, to whom, and when nothing is."""

from dataclasses import replace

import pytest

from hwmodels.gpus import GPUS
from hwmodels.memory.cost import LaidOutCostModel
from hwmodels.memory.fits import MEMORY_FITS
from hwmodels.memory.layout import KvLayout
from hwmodels.memory.tlb import translation
from hwmodels.ops import Bound, DecodeAttention, Gemm, PrefillAttention, Source
from hwmodels.roofline import RooflineCostModel

H200 = GPUS["h200_sxm"]
BASE, FIT = RooflineCostModel(H200), MEMORY_FITS["h200_sxm"]
ONE = KvLayout(16, 2.0, 1, 128, 80, 1, pools="cross_layer", order="scattered")
WIDE = replace(ONE, num_blocks=int(110e9 // ONE.block_bytes))
DECODE = DecodeAttention(256, 256 * 6000, 6000, 8, 1, 128, 128, 512.0, repeat=80)
PREFILL = PrefillAttention(512, 100_000, 8, 1, 128, 128, repeat=80)


def model(layout=WIDE, fit=FIT):
    return LaidOutCostModel(BASE, layout, fit, H200.boost_hz)


def test_a_decode_beyond_the_reach_pays_what_outlasts_it():
    cost, plain = model().cost(DECODE), BASE.cost(DECODE)
    found = translation(WIDE, 256 * (6000 / 16 + 15 / 32), FIT, H200.boost_hz)
    assert cost.seconds == pytest.approx(80 * found.seconds)
    assert cost.seconds > plain.seconds
    assert (cost.bound, cost.source) == (Bound.TLB, Source.EXTRAPOLATED)
    assert cost.kernels == plain.kernels


def test_never_faster_than_the_walkers_let_through():
    read = model().blocks(DECODE) * WIDE.layer_block_bytes
    found = model().translation(DECODE)
    assert model().cost(DECODE).seconds / 80 >= read / found.cap_bytes_per_s * (1 - 1e-9)


@pytest.mark.parametrize("op", [DECODE, PREFILL, Gemm(16, 4096, 4096)])
@pytest.mark.parametrize(
    "layout",
    [
        replace(WIDE, pools="per_layer"),
        replace(WIDE, pools="per_layer", order="compact"),
        replace(WIDE, num_blocks=WIDE.num_blocks // 2),
    ],
)
def test_within_the_reach_every_cost_is_the_bases(op, layout):
    assert model(layout).cost(op) == BASE.cost(op)


def test_products_are_no_business_of_the_layout():
    assert model().cost(Gemm(16, 4096, 4096)) == BASE.cost(Gemm(16, 4096, 4096))
    assert model().launch_floor_s(9, graph=True) == BASE.launch_floor_s(9, graph=True)


def test_a_prompt_that_computes_long_hides_it():
    assert model().cost(PREFILL) == BASE.cost(PREFILL)


def test_blocks_that_operations_read():
    assert model().blocks(DECODE) == pytest.approx(256 * (375 + 15 / 32))
    assert model().blocks(PREFILL) == pytest.approx(6250 + 15 / 32)
    assert model().blocks(replace(PREFILL, window=100)) == pytest.approx(612 / 16 + 15 / 32)
    assert model().blocks(replace(DECODE, kv_tokens=256)) >= 256


def test_nothing_to_read_is_nothing_to_translate():
    idle = replace(DECODE, seqs=0, kv_tokens=0)
    assert model().cost(idle) == BASE.cost(idle)


def test_the_cost_grows_with_the_kv_read():
    times = [
        model().cost(replace(DECODE, kv_tokens=256 * n)).seconds for n in range(500, 6500, 500)
    ]
    assert times == sorted(times)
