import dataclasses

import numpy as np
import pytest

from hwmodels.gpus import GPUS
from hwmodels.moe import expected_active_experts
from hwmodels.ops import Bound, ExpertGemm, Gemm, Source
from hwmodels.roofline import RooflineCostModel

H100 = RooflineCostModel(GPUS["h100_sxm"])
QWEN3_30B = ExpertGemm(1, 2048, 768, 1536, 128, 128, 8)


def test_active_experts_match_a_draw():
    rng = np.random.default_rng(7)
    picks = [
        len({expert for _ in range(16) for expert in rng.choice(128, 8, replace=False)})
        for _ in range(200)
    ]
    assert expected_active_experts(16, 128, 8, 128) == pytest.approx(np.mean(picks), rel=0.02)


def test_active_experts_at_the_ends():
    assert expected_active_experts(0, 128, 8, 128) == 0
    assert expected_active_experts(1, 128, 8, 128) == pytest.approx(8)
    assert expected_active_experts(1, 128, 8, 16) == pytest.approx(1)
    assert expected_active_experts(10_000, 128, 8, 128) == pytest.approx(128)


@pytest.mark.parametrize("tokens", [16, 64, 256])
def test_small_batches_stream_the_active_weights(tokens):
    cost = H100.cost(dataclasses.replace(QWEN3_30B, tokens=tokens))
    active = expected_active_experts(tokens, 128, 8, 128)
    weights = active * 3 * 2048 * 768 * 2
    assert cost.bound is Bound.HBM
    assert weights / 3.35e12 < cost.seconds < 1.5 * weights / (0.866 * 3.35e12)
    assert cost.source is Source.EXTRAPOLATED
    assert cost.kernels == 2


def test_one_expert_for_all_is_a_dense_product():
    dense = H100.cost(Gemm(512, 8192, 4096)).seconds + H100.cost(Gemm(512, 4096, 4096)).seconds
    sole = H100.cost(ExpertGemm(512, 4096, 4096, 8192, 1, 1, 1)).seconds
    assert sole == pytest.approx(dense)


def test_four_bit_experts_stream_faster_and_no_token_is_free():
    bf16 = dataclasses.replace(QWEN3_30B, tokens=32)
    mxfp4 = dataclasses.replace(bf16, weight_dtype="mxfp4")
    assert H100.cost(bf16).seconds > 2.5 * H100.cost(mxfp4).seconds
    assert H100.cost(dataclasses.replace(bf16, tokens=0)).seconds == 0.0
