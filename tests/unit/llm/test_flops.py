import pytest

from twin.llm.arch import MlaArch, ModelArch, MoeArch
from twin.llm.flops import flops_by_part

LLAMA_8B = ModelArch("llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, 131072)


def test_llama_8b_by_hand():
    flops = flops_by_part(LLAMA_8B, 1, 1000)
    # q and o: 4096 x 4096 each; k and v: 4096 x 1024 each; 32 layers; two a multiply-add.
    assert flops.attention_projections == 2 * 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024)
    # QK and PV: 32 heads x 128 x 1000 keys each.
    assert flops.attention_scores == 2 * 2 * 32 * 32 * 128 * 1000
    assert flops.mlp == 2 * 32 * 3 * 4096 * 14336
    assert flops.lm_head == 2 * 4096 * 128256
    # The network's 8.03e9 parameters but its input embedding: 7.5e9, twice, plus scores.
    assert flops.total - flops.attention_scores == pytest.approx(2 * 7.504e9, rel=1e-3)


def test_tokens_scale_and_only_sampled_ones_reach_the_head():
    one, many = flops_by_part(LLAMA_8B, 1, 64), flops_by_part(LLAMA_8B, 2048, 64, sampled=1)
    assert many.mlp == 2048 * one.mlp
    assert many.lm_head == one.lm_head


def test_windows_cap_the_context():
    mixed = ModelArch(
        "mixed", 24, 2880, 64, 8, 64, 2880, 201088, 131072, sliding_window=128,
        num_sliding_layers=12,
    )  # fmt: skip
    assert flops_by_part(mixed, 1, 1000).attention_scores == 4 * 64 * 64 * 12 * (1000 + 128)
    assert flops_by_part(mixed, 1, 100).attention_scores == 4 * 64 * 64 * 24 * 100


def test_mixture_counts_active_experts_and_dense_layers():
    moe = ModelArch(
        "moe", 4, 1000, 8, 8, 128, 3000, 100, 4096,
        moe=MoeArch(64, 6, 500, num_moe_layers=3, shared_intermediate=700),
    )  # fmt: skip
    dense, sparse = 3 * 1000 * 3000, 3 * 1000 * (6 * 500 + 700) + 1000 * 64
    assert flops_by_part(moe, 1, 1).mlp == 2 * (dense + 3 * sparse)


def test_deepseek_v3_active_parameters():
    """37e9 parameters are active a token (technical report), 0.9e9 of them input embedding."""
    v3 = ModelArch(
        "deepseek-v3", 61, 7168, 128, 128, 128, 18432, 129280, 163840,
        moe=MoeArch(256, 8, 2048, 58, 2048), mla=MlaArch(512, 1536, 128, 64, 128),
    )  # fmt: skip
    flops = flops_by_part(v3, 1, 0)
    assert flops.total / 2 == pytest.approx(37e9 - 0.93e9, rel=0.02)
