import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from measured_profile import H100, decode_s, gemm_s, profile

from hwmodels.gpus import GPUS
from hwmodels.measured import CostScales, MeasuredCostModel
from hwmodels.ops import (
    Collective,
    DecodeAttention,
    Elementwise,
    ExpertGemm,
    Gemm,
    PrefillAttention,
    Sampling,
    Source,
)
from hwmodels.profile import ProfileError
from hwmodels.roofline import RooflineCostModel

FACTOR = 1.3
MODEL, PHYSICS = MeasuredCostModel(profile(FACTOR), H100), RooflineCostModel(H100)
AS_MEASURED = MeasuredCostModel(profile(FACTOR), H100, as_measured=True)
MIB = 2**20


def test_a_measured_product_costs_what_was_measured() -> None:
    cost = MODEL.cost(Gemm(8, 4096, 4096, repeat=3))
    assert cost.seconds == pytest.approx(3 * FACTOR * gemm_s(8, 4096, 4096))
    assert (cost.source, cost.kernels) == (Source.TABLE, 3)


@pytest.mark.parametrize(("m", "n", "k"), [(8, 6144, 4096), (100, 3000, 2048), (33, 4096, 14336)])
def test_an_unmeasured_product_takes_the_ratio_of_those_around(m: int, n: int, k: int) -> None:
    cost = MODEL.cost(Gemm(m, n, k))
    assert cost.seconds == pytest.approx(FACTOR * gemm_s(m, n, k))
    assert cost.source is Source.INTERPOLATED


def test_output_heads_lie_beyond_the_table_and_say_so() -> None:
    cost = MODEL.cost(Gemm(8, 128256, 4096))
    assert cost.seconds == pytest.approx(FACTOR * gemm_s(8, 128256, 4096))
    assert cost.source is Source.EXTRAPOLATED


def test_above_the_largest_m_the_form_takes_over_without_a_jump() -> None:
    def ratio(m: int) -> float:
        return MODEL.cost(Gemm(m, 4096, 4096)).seconds / gemm_s(m, 4096, 4096)

    assert ratio(4096) == pytest.approx(FACTOR)
    assert ratio(4097) == pytest.approx(FACTOR, rel=1e-3)
    assert 1 < ratio(6000) < FACTOR
    assert ratio(8192) == pytest.approx(1)
    assert ratio(20000) == pytest.approx(1)


def test_no_tokens_cost_nothing() -> None:
    assert MODEL.cost(Gemm(0, 4096, 4096)).seconds == 0
    assert MODEL.cost(DecodeAttention(0, 0, 0, 32, 8, 128, 128, 4096.0)).seconds == 0


def test_fp8_takes_its_own_table_or_physics() -> None:
    op = Gemm(8, 4096, 4096, "fp8", "fp8")
    assert MODEL.cost(op) == PHYSICS.cost(op)
    base = profile(FACTOR)
    slow = {**base.tables["gemm.bf16"], "seconds": base.tables["gemm.bf16"]["seconds"] * 0 + 1e-3}
    tables = {**base.tables, "gemm.fp8": base.tables["gemm.bf16"], "gemm.fp8_block": slow}
    both = replace(base, tables=tables)
    tensor = MeasuredCostModel(both, H100).cost(op)
    block = MeasuredCostModel(both, H100, fp8_kernel="fp8_block").cost(op)
    assert tensor.seconds == pytest.approx(FACTOR * gemm_s(8, 4096, 4096))
    assert block.seconds == pytest.approx(1e-3)


def test_weight_only_products_borrow_bf16s_ratio_and_say_so() -> None:
    op = Gemm(8, 4096, 4096, "bf16", "int4")
    cost = MODEL.cost(op)
    assert cost.seconds == pytest.approx(FACTOR * PHYSICS.cost(op).seconds)
    assert cost.source is Source.EXTRAPOLATED


def decode(seqs: int, length: int, heads: int = 32, kv_heads: int = 8) -> DecodeAttention:
    width = 512.0 * kv_heads
    return DecodeAttention(seqs, seqs * length, length, heads, kv_heads, 128, 128, width)


def test_decode_as_measured_is_the_table() -> None:
    cost = AS_MEASURED.cost(decode(16, 1024))
    assert cost.seconds == pytest.approx(FACTOR * decode_s(32, 8, 16, 1024))
    assert cost.source is Source.TABLE


def test_serving_finds_small_kv_cold_and_large_kv_as_measured() -> None:
    warm = decode(4, 1024)  # 16 MiB, the L2 holds 50
    assert MODEL.cost(warm).seconds > 1.05 * AS_MEASURED.cost(warm).seconds
    assert MODEL.cost(warm).seconds == pytest.approx(FACTOR * PHYSICS.cost(warm).seconds)
    large = decode(64, 8192)
    assert MODEL.cost(large).seconds == pytest.approx(AS_MEASURED.cost(large).seconds)


def test_many_kv_heads_cost_what_few_do_on_a_larger_batch() -> None:
    many, few = decode(4, 1024, 32, 32), decode(16, 1024, 8, 8)
    assert AS_MEASURED.cost(many).seconds == pytest.approx(AS_MEASURED.cost(few).seconds)
    assert AS_MEASURED.cost(many).source is Source.INTERPOLATED


def test_fp8_kv_without_a_table_borrows_the_ratio() -> None:
    op = replace(decode(16, 1024), kv_dtype="fp8", kv_bytes_per_token=2048.0)
    cost = MODEL.cost(op)
    assert cost.seconds == pytest.approx(FACTOR * PHYSICS.cost(op).seconds)
    assert cost.source is Source.EXTRAPOLATED


def test_uneven_lengths_are_taken_as_even() -> None:
    even = decode(16, 1024)
    assert MODEL.cost(replace(even, kv_max_tokens=9000)) == MODEL.cost(even)


def chunk(query: int, kv: int, *, joined: bool = False) -> PrefillAttention:
    return PrefillAttention(query, kv, 32, 8, 128, 128, joined=joined)


def test_a_whole_prompt_is_the_table() -> None:
    cost = MODEL.cost(chunk(1024, 1024))
    assert cost.seconds == pytest.approx(FACTOR * PHYSICS.cost(chunk(1024, 1024)).seconds)
    assert cost.source is Source.TABLE


def test_a_cached_prefix_adds_what_physics_says() -> None:
    with_prefix, alone = MODEL.cost(chunk(1024, 5120)), MODEL.cost(chunk(1024, 1024))
    expected = PHYSICS.cost(chunk(1024, 5120)).seconds / PHYSICS.cost(chunk(1024, 1024)).seconds
    assert with_prefix.seconds / alone.seconds == pytest.approx(expected)
    assert with_prefix.source is Source.PHYSICS


def test_a_joined_chunk_costs_what_a_sequence_adds_to_a_batch() -> None:
    one, _ = MODEL.prefill.batch_seconds(chunk(128, 128), 1)
    many, _ = MODEL.prefill.batch_seconds(chunk(128, 128), 16)
    joined = MODEL.cost(chunk(128, 128, joined=True))
    assert joined.seconds == pytest.approx((many - one) / 15)
    assert 0 < joined.seconds < MODEL.cost(chunk(128, 128)).seconds
    assert joined.kernels == 0


def experts(tokens: int, hidden: int = 2048) -> ExpertGemm:
    return ExpertGemm(tokens, hidden, 768, 1536, 128, 128, 8)


def test_experts_of_a_measured_shape_are_the_table() -> None:
    cost = MODEL.cost(experts(64))
    assert cost.seconds == pytest.approx(FACTOR * PHYSICS.cost(experts(64)).seconds)
    assert cost.source is Source.TABLE
    assert MODEL.cost(experts(100)).source is Source.INTERPOLATED


def test_experts_of_another_shape_take_the_nearest_ratio() -> None:
    cost = MODEL.cost(experts(64, hidden=4096))
    assert cost.seconds == pytest.approx(FACTOR * PHYSICS.cost(experts(64, 4096)).seconds)
    assert cost.source is Source.EXTRAPOLATED


def all_reduce(num_bytes: float, **more: bool) -> Collective:
    return Collective("all_reduce", num_bytes, 2, **more)


def test_the_engines_all_reduce_jumps_where_it_hands_over() -> None:
    just_below = MODEL.cost(all_reduce(8 * MIB - 16)).seconds
    at = MODEL.cost(all_reduce(8 * MIB)).seconds
    # Below the limit the custom kernel's own bandwidth carries on from 4 MiB.
    assert just_below == pytest.approx(5e-6 + 8 * MIB / 200e9, rel=1e-3)
    assert at == pytest.approx(just_below + 40e-6, rel=1e-3)


def test_all_reduce_without_the_engines_own_is_the_least_line() -> None:
    for size in (1024.0, 100_000.0, 1e8):
        cost = MODEL.cost(all_reduce(size, custom_allowed=False))
        assert cost.seconds == pytest.approx(min(6e-6 + size / 10e9, 20e-6 + size / 300e9))


def test_collectives_without_a_table_are_the_rooflines() -> None:
    op = Collective("all_gather", 1e6, 4)
    assert MODEL.cost(op) == PHYSICS.cost(op)
    assert MODEL.cost(Collective("all_reduce", 1e6, 1)).seconds == 0


def test_small_kernels_stay_physics() -> None:
    for op in (Elementwise(1e6, 3), Sampling(8, 128256)):
        assert MODEL.cost(op) == PHYSICS.cost(op)


def test_scales_multiply_their_own_family_alone() -> None:
    scaled = MeasuredCostModel(profile(FACTOR), H100, CostScales(gemm=2.0, elementwise=3.0))
    ops = {Gemm(8, 4096, 4096): 2.0, Elementwise(1e6, 3): 3.0, Sampling(8, 1000): 3.0}
    for op, factor in {**ops, decode(16, 1024): 1.0, chunk(512, 512): 1.0}.items():
        assert scaled.cost(op).seconds == pytest.approx(factor * MODEL.cost(op).seconds)


def test_launching_is_the_hosts_affair() -> None:
    for graph in (True, False):
        assert MODEL.launch_floor_s(100, graph=graph) == PHYSICS.launch_floor_s(100, graph=graph)


def test_a_profile_of_another_gpu_is_refused() -> None:
    with pytest.raises(ProfileError, match="holds kernels of h100_sxm, asked for kernels of a100"):
        MeasuredCostModel(profile(), GPUS["a100_sxm"])


def test_fitted_parameters_replace_the_shipped_ones() -> None:
    gemm = {"t0_s": 1e-3, "p_norm": None}
    refit = replace(profile(1.0), tables={}, parameters={"gemm": gemm})
    model = MeasuredCostModel(refit, H100)
    assert model.efficiency.gemm.p_norm == math.inf
    assert model.cost(Gemm(1, 64, 64)).seconds > 1e-3
