import pytest

from hwmodels.cost import cost_model_for
from hwmodels.measured.scales import CostScales
from hwmodels.ops import (
    Bound,
    Collective,
    DecodeAttention,
    Elementwise,
    ExpertGemm,
    Gemm,
    OpCost,
    Source,
)
from hwmodels.scaled import Corrections, RememberingCostModel, ScaledCostModel

FP8 = Gemm(8, 4096, 4096, "fp8", "fp8", 10)
BF16 = Gemm(8, 4096, 4096, repeat=10)
BIG = Gemm(8192, 8192, 8192, repeat=2)
KV8 = DecodeAttention(16, 64_000, 4000, 32, 8, 128, 128, 2048.0, "fp8", 10)
KV16 = DecodeAttention(16, 64_000, 4000, 32, 8, 128, 128, 4096.0, "bf16", 10)
SMALL = Elementwise(1e6, 4, 10)


class Fixed:
    """A millisecond and ten kernels an operation."""

    def __init__(self, bound=Bound.HBM):
        self.bound, self.asked = bound, 0

    def cost(self, op):
        self.asked += 1
        return OpCost(1e-3, self.bound, Source.TABLE, 10)

    def launch_floor_s(self, kernels, *, graph):
        return kernels * (1e-6 if graph else 20e-6)


def milliseconds(op, bound=Bound.HBM, **corrections):
    return 1e3 * ScaledCostModel(Fixed(bound), Corrections(**corrections)).cost(op).seconds


def test_no_correction_changes_nothing():
    base = cost_model_for("h100_sxm")
    for op in (FP8, BF16, BIG, KV8, KV16, SMALL):
        assert ScaledCostModel(base, Corrections()).cost(op) == base.cost(op)


@pytest.mark.parametrize(
    ("corrections", "touched", "untouched", "expected"),
    [
        ({"scales": CostScales(elementwise=1.5)}, SMALL, BF16, 1.5),
        ({"decode_8bit": 1.4}, KV8, KV16, 1.4),
        ({"product_overlap_s": 20e-6}, FP8, BF16, 0.8),
        ({"product_overlap_s": 90e-6}, FP8, BF16, 0.4),  # at most 60 % of the table's time
        (
            {"wide_all_reduce_s": 7e-6},
            Collective("all_reduce", 65536.0, 8, repeat=10),
            Collective("all_reduce", 65536.0, 4, repeat=10),
            1.07,
        ),
        (
            {"many_tokens_experts": 1.7},
            ExpertGemm(257, 2880, 2880, 5760, 128, 128, 4, "bf16", "mxfp4"),
            ExpertGemm(256, 2880, 2880, 5760, 128, 128, 4, "bf16", "mxfp4"),
            1.7,
        ),
    ],
)
def test_each_correction_touches_what_it_says(corrections, touched, untouched, expected):
    assert milliseconds(touched, **corrections) == pytest.approx(expected)
    assert milliseconds(untouched, **corrections) == pytest.approx(1.0)


def test_compute_slows_what_the_tensor_cores_limit():
    assert milliseconds(BIG, Bound.COMPUTE, compute=1.2) == pytest.approx(1.2)
    assert milliseconds(BIG, Bound.HBM, compute=1.2) == pytest.approx(1.0)


def test_gaps_count_kernels():
    assert milliseconds(BF16, kernel_gap_s=2e-6) == pytest.approx(1.02)


def test_eager_launches():
    scaled = ScaledCostModel(Fixed(), Corrections(), eager_op_s=5e-6)
    assert scaled.launch_floor_s(100, graph=False) == pytest.approx(500e-6)
    assert scaled.launch_floor_s(100, graph=True) == pytest.approx(100e-6)
    assert ScaledCostModel(Fixed(), Corrections()).launch_floor_s(100, graph=False) == 2e-3


@pytest.mark.parametrize(("fitted_s", "expected"), [(5e-6, 20e-6), (30e-6, 30e-6)])
def test_an_operation_takes_no_less_uncompiled(fitted_s, expected):
    """The host of a profile of one's own may have been measured faster than what was fitted."""
    scaled = ScaledCostModel(Fixed(), Corrections(), fitted_s, compiled=False)
    assert scaled.launch_floor_s(100, graph=False) == pytest.approx(100 * expected)
    assert scaled.launch_floor_s(100, graph=True) == pytest.approx(100e-6)


def test_remembering_asks_once():
    base = Fixed()
    model = RememberingCostModel(base)
    assert model.cost(BF16) == model.cost(Gemm(8, 4096, 4096, repeat=10))
    assert base.asked == 1
    assert model.launch_floor_s(3, graph=True) == 3e-6
