import pytest

from hwmodels.ops import (
    Collective,
    DecodeAttention,
    Elementwise,
    ExpertGemm,
    Gemm,
    PrefillAttention,
    Sampling,
)
from twin.errors import InputError
from twin.llm.arch import MlaArch, ModelArch, MoeArch
from twin.llm.flops import flops_by_part
from twin.llm.lowering import Precision, attention_ops, dense_ops
from twin.step import BatchShape

LLAMA_8B = ModelArch("llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, 131072)
QWEN_30B = ModelArch(
    "qwen3-30b-a3b", 48, 2048, 32, 4, 128, 6144, 151936, 40960, moe=MoeArch(128, 8, 768, 48)
)
DEEPSEEK = ModelArch(
    "deepseek-v3", 61, 7168, 128, 128, 128, 18432, 129280, 163840,
    moe=MoeArch(256, 8, 2048, 58, 2048), mla=MlaArch(512, 1536, 128, 64, 128),
)  # fmt: skip
GPT_OSS = ModelArch(
    "gpt-oss-20b", 24, 2880, 64, 8, 64, 2880, 201088, 131072, sliding_window=128,
    num_sliding_layers=12, moe=MoeArch(32, 4, 2880, 24),
)  # fmt: skip
BF16 = Precision()


def of(ops, kind):
    return [op for op in ops if isinstance(op, kind)]


def weight_flops(ops):
    dense = sum(2 * op.m * op.n * op.k * op.repeat for op in of(ops, Gemm))
    return dense + sum(
        2 * op.tokens * op.experts_per_token * op.local_experts / op.num_experts * op.hidden
        * (op.gated_n + op.intermediate) * op.repeat
        for op in of(ops, ExpertGemm)
    )  # fmt: skip


@pytest.mark.parametrize("arch", [LLAMA_8B, QWEN_30B, DEEPSEEK, GPT_OSS], ids=lambda a: a.name)
def test_one_rank_does_the_networks_arithmetic(arch):
    flops = flops_by_part(arch, 100, 0, sampled=7)
    assert weight_flops(dense_ops(arch, BF16, 1, 100, 7)) == pytest.approx(flops.total, rel=1e-3)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_ranks_share_the_arithmetic_of_a_dense_network(tp):
    whole = weight_flops(dense_ops(LLAMA_8B, BF16, 1, 100, 7))
    assert tp * weight_flops(dense_ops(LLAMA_8B, BF16, tp, 100, 7)) == pytest.approx(whole)


def test_llama_8b_products_by_hand():
    gemms = {(op.n, op.k, op.repeat) for op in of(dense_ops(LLAMA_8B, BF16, 1, 64, 9), Gemm)}
    assert gemms == {
        (6144, 4096, 32), (4096, 4096, 32), (28672, 4096, 32), (4096, 14336, 32), (128256, 4096, 1),
    }  # fmt: skip
    sharded = {(op.n, op.k) for op in of(dense_ops(LLAMA_8B, BF16, 4, 64, 9), Gemm)}
    assert sharded == {(1536, 4096), (4096, 1024), (7168, 4096), (4096, 3584), (32064, 4096)}


def test_five_small_kernels_a_layer():
    small = of(dense_ops(LLAMA_8B, BF16, 1, 64, 1), Elementwise)
    assert sum(op.kernels for op in small if op.repeat == 32) == 5
    quantised = of(dense_ops(LLAMA_8B, Precision("fp8", "fp8"), 1, 64, 1), Elementwise)
    assert sum(op.kernels for op in quantised if op.repeat == 32) == 6


def test_kv_heads_replicate_beyond_their_number():
    """Four KV heads over eight ranks: each rank keeps one, so two ranks hold the same."""
    qkv = of(dense_ops(QWEN_30B, BF16, 8, 1, 1), Gemm)[0]
    assert qkv.n == (32 // 8 + 2 * 1) * 128
    shape = BatchShape((), 2, 200, 100, 2)
    for tp, heads, kv_heads in ((1, 32, 4), (4, 8, 1), (8, 4, 1)):
        (op,) = attention_ops(QWEN_30B, BF16, tp, shape)
        assert (op.heads, op.kv_heads) == (heads, kv_heads)
        assert op.kv_bytes_per_token == 2 * kv_heads * 128 * 2


def test_collectives_two_a_layer_one_for_the_embedding_and_the_logits():
    assert not of(dense_ops(LLAMA_8B, BF16, 1, 64, 9), Collective)
    reduce, gather = of(dense_ops(LLAMA_8B, BF16, 2, 64, 9), Collective)
    assert (reduce.kind, reduce.num_bytes, reduce.repeat) == ("all_reduce", 64 * 4096 * 2, 65)
    assert (gather.kind, gather.num_bytes, gather.repeat) == ("all_gather", 9 * 128256 * 2, 1)


def test_head_runs_for_sampled_sequences_only():
    ops = dense_ops(LLAMA_8B, BF16, 1, 2048, 3)
    assert of(ops, Sampling) == [Sampling(3, 128256)]
    assert [op.m for op in of(ops, Gemm)] == [2048] * 4 + [3]
    assert not of(dense_ops(LLAMA_8B, BF16, 1, 2048, 0), Sampling)


def test_dtypes_reach_the_layers_but_not_the_head():
    gemms = of(dense_ops(LLAMA_8B, Precision("fp8", "fp8", "fp8"), 1, 8, 8), Gemm)
    assert [(op.compute_dtype, op.weight_dtype) for op in gemms[:4]] == [("fp8", "fp8")] * 4
    assert gemms[-1].weight_dtype == "bf16"
    (decode,) = attention_ops(LLAMA_8B, Precision(kv_dtype="fp8"), 1, BatchShape((), 1, 10, 10, 1))
    assert (decode.kv_dtype, decode.kv_bytes_per_token) == ("fp8", 2 * 8 * 128)
    oss = dense_ops(GPT_OSS, Precision("mxfp4"), 1, 8, 8)
    assert {op.weight_dtype for op in of(oss, Gemm)} == {"bf16"}
    assert {op.weight_dtype for op in of(oss, ExpertGemm)} == {"mxfp4"}


def test_experts_are_sliced_by_rank_beside_dense_layers_and_a_shared_expert():
    ops = dense_ops(DEEPSEEK, BF16, 8, 16, 1)
    (experts,) = of(ops, ExpertGemm)
    assert (experts.intermediate, experts.gated_n, experts.repeat) == (256, 512, 58)
    assert (experts.num_experts, experts.local_experts) == (256, 256)
    gemms = {(op.n, op.k, op.repeat) for op in of(ops, Gemm)}
    assert (2 * 18432 // 8, 7168, 3) in gemms, "the first three layers are dense"
    assert (2 * 2048 // 8, 7168, 58) in gemms, "the shared expert"
    assert (256, 7168, 58) in gemms, "the router, whole on every rank"


def test_latent_attention_is_replicated_and_decodes_absorbed():
    gemms = {(op.n, op.k) for op in of(dense_ops(DEEPSEEK, BF16, 8, 16, 1), Gemm)}
    assert (1536 + 512 + 64, 7168) in gemms
    assert (16 * 192, 1536) in gemms
    assert (16 * 256, 512) in gemms
    shape = BatchShape(((100, 300),), 2, 500, 250, 3)
    prefill, decode = attention_ops(DEEPSEEK, BF16, 8, shape)
    assert prefill == PrefillAttention(100, 300, 16, 16, 192, 128, repeat=61)
    assert decode == DecodeAttention(2, 500, 250, 16, 1, 576, 512, 1152.0, repeat=61)


def test_sliding_layers_see_their_window():
    shape = BatchShape(((512, 2048),), 4, 4000, 1000, 5)
    full, sliding, all_kv, window_kv = attention_ops(GPT_OSS, BF16, 1, shape)
    assert (full.window, full.repeat) == (None, 12)
    assert (sliding.window, sliding.repeat) == (128, 12)
    assert (all_kv.kv_tokens, all_kv.repeat) == (4000, 12)
    assert (window_kv.kv_tokens, window_kv.kv_max_tokens) == (4 * 128, 128)


def test_only_the_first_chunk_starts_a_kernel():
    shape = BatchShape(((5, 5), (6, 6), (7, 9)), 0, 0, 0, 3)
    assert [op.joined for op in attention_ops(LLAMA_8B, BF16, 1, shape)] == [False, True, True]


def test_bad_input_says_what_would_be_right():
    with pytest.raises(InputError, match="parallelism 3 does not divide the 32 heads"):
        dense_ops(LLAMA_8B, BF16, 3, 1, 1)
    with pytest.raises(InputError, match="choose one of bf16, fp8"):
        Precision("fp4")
    with pytest.raises(InputError, match="unknown dtype 'mxfp4'"):
        Precision(kv_dtype="mxfp4")
