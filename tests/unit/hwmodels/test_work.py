from dataclasses import replace

import pytest

from hwmodels.gpus import GPUS
from hwmodels.ops import (
    Collective,
    DecodeAttention,
    Elementwise,
    ExpertGemm,
    Gemm,
    PrefillAttention,
    Sampling,
)
from hwmodels.work import Work, compute_path, work_of

H100, A100 = GPUS["h100_sxm"], GPUS["a100_sxm"]


def test_a_product_reads_both_operands_once_and_writes_its_result() -> None:
    found = work_of(Gemm(4, 8, 16, repeat=3), H100)
    assert found == Work(3 * 2 * 4 * 8 * 16, 3 * 2 * (4 * 16 + 8 * 16 + 4 * 8))
    assert found.intensity == pytest.approx(1024 / 448)


def test_eight_bits_halve_inputs_only_where_tensor_cores_take_them() -> None:
    op = Gemm(4, 8, 16, "fp8", "fp8")
    assert work_of(op, H100).num_bytes == 4 * 16 + 8 * 16 + 2 * 4 * 8
    assert work_of(op, A100).num_bytes == 2 * 4 * 16 + 8 * 16 + 2 * 4 * 8
    assert (compute_path(op, H100), compute_path(op, A100)) == ("fp8", "bf16")


@pytest.mark.parametrize("window", [None, 1, 5, 9, 12, 40])
@pytest.mark.parametrize(("query", "kv"), [(1, 1), (4, 12), (12, 12)])
def test_prefill_counts_the_pairs_that_are_not_masked(
    query: int, kv: int, window: int | None
) -> None:
    op = PrefillAttention(query, kv, 2, 1, 8, 8, window=window)
    pairs = sum(min(position + 1, window or position + 1) for position in range(kv - query, kv))
    assert work_of(op, H100).flops == 2 * 16 * 2 * pairs


def test_decode_reads_its_kv() -> None:
    op = DecodeAttention(2, 100, 60, 8, 2, 16, 16, 128.0, repeat=2)
    assert work_of(op, H100) == Work(2 * 2 * 100 * 8 * 32, 2 * (100 * 128 + 2 * 8 * 32 * 2))


def test_experts_that_nobody_picks_are_not_read() -> None:
    one = ExpertGemm(1, 64, 32, 64, 8, 8, 2)
    weights = 2 * (64 * 64 + 32 * 64)
    assert work_of(one, H100).num_bytes == pytest.approx(2 * weights + 2 * (96 + 128) * 2)
    many = work_of(replace(one, tokens=1000), H100)
    assert many.num_bytes > 8 * weights
    assert many.flops == 1000 * work_of(one, H100).flops


def test_small_kernels_count_no_flops_and_collectives_nothing() -> None:
    assert work_of(Elementwise(10.0, 2, 3), H100) == Work(0.0, 30.0)
    assert work_of(Sampling(2, 5), H100).flops == 0.0
    assert work_of(Collective("all_reduce", 8.0, 2), H100) + Work(1.0, 2.0) == Work(1.0, 2.0)
