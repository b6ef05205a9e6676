"""Bytes of weights on a rank, checked by hand."""

import pytest

from twin.llm.models import MODELS
from twin.llm.weights import parameter_count, rotary_table_bytes, weights_bytes

LLAMA_8B = MODELS["llama-3.1-8b"]


def test_one_gpu_holds_two_bytes_a_parameter() -> None:
    # 128,256 is a multiple of 64, so no padding here.
    assert weights_bytes(LLAMA_8B) == 2 * parameter_count(LLAMA_8B)


def test_norms_are_replicated_and_the_rest_is_cut() -> None:
    norms = (2 * 32 + 1) * 4096
    cut = parameter_count(LLAMA_8B) - norms
    assert weights_bytes(LLAMA_8B, tp=4) == 2 * (cut // 4 + norms)


def test_kv_projections_stop_shrinking_below_one_head() -> None:
    norms = (2 * 32 + 1) * 4096
    kv = 32 * 2 * 8 * 128 * 4096
    cut = parameter_count(LLAMA_8B) - norms - kv
    assert weights_bytes(LLAMA_8B, tp=16) == 2 * (cut // 16 + kv // 8 + norms)


def test_vocabulary_is_padded_to_64() -> None:
    from dataclasses import replace

    odd = replace(LLAMA_8B, vocab_size=128_257)
    added = weights_bytes(odd) - weights_bytes(LLAMA_8B)
    assert added == 2 * 2 * 64 * 4096  # embedding and head, 64 rows each, two bytes


def test_fp8_keeps_embedding_head_and_norms_in_bf16() -> None:
    kept = 2 * 128_256 * 4096 + (2 * 32 + 1) * 4096
    linear = parameter_count(LLAMA_8B) - kept
    assert weights_bytes(LLAMA_8B, "fp8") == linear + 2 * kept


def test_block_scales_and_row_scales() -> None:
    fp8 = MODELS["qwen3-8b-fp8"]
    plain = weights_bytes(MODELS["qwen3-8b"], "fp8")
    linear = parameter_count(fp8) - 2 * 151_936 * 4096 - 36 * (2 * 4096 + 256) - 4096
    assert weights_bytes(fp8) - plain == pytest.approx(4 * linear / 128**2, abs=1)
    # INT8 keeps one float32 a row: 10,240 query, key and value rows and so on, 80 layers.
    big = MODELS["llama-3.1-70b"]
    rows = 80 * (10_240 + 8192 + 2 * 28_672 + 8192)
    assert weights_bytes(big, "int8") - weights_bytes(big, "fp8") == 4 * rows


def test_int4_groups_of_128() -> None:
    kept = 2 * 128_256 * 4096 + (2 * 32 + 1) * 4096
    linear = parameter_count(LLAMA_8B) - kept
    assert weights_bytes(LLAMA_8B, "int4") == 2 * kept + linear // 2 + 2 * linear // 128


def test_w8a8_70b_as_its_log_states() -> None:
    # "model weights take 67.7229" GiB, vllm-project/vllm pull 12569: W8A8, TP 1.
    arch = MODELS["llama-3.1-70b"]
    gib = (weights_bytes(arch, "int8") + rotary_table_bytes(arch)) / 2**30
    assert gib == pytest.approx(67.7229, abs=0.005)


def test_published_checkpoint_sizes() -> None:
    # openai/gpt-oss-20b is 13.76 GB of safetensors, DeepSeek-V3 without MTP about 673 GB.
    assert weights_bytes(MODELS["gpt-oss-20b"]) / 1e9 == pytest.approx(13.76, abs=0.02)
    assert weights_bytes(MODELS["gpt-oss-120b"]) / 1e9 == pytest.approx(65.25, abs=0.1)


def test_experts_are_dealt_out_whole_under_ep() -> None:
    arch = MODELS["deepseek-v3"]
    whole = weights_bytes(arch, tp=8, ep=8)
    wide = weights_bytes(arch, tp=8, ep=16)
    experts = 58 * 256 * 3 * 7168 * 2048 * (1 + 4 / 128**2)
    assert whole - wide == pytest.approx(experts / 16, abs=2)


def test_pipeline_stage_holds_half_the_layers_and_the_head() -> None:
    norm = 4096
    head = 128_256 * 4096
    layers = parameter_count(LLAMA_8B) - 2 * head - norm
    assert weights_bytes(LLAMA_8B, pp=2) == 2 * (layers // 2 + head + norm)


def test_checkpoint_size_overrides_the_sum() -> None:
    arch = MODELS["llama-3.1-405b-fp8"]
    assert arch.checkpoint_bytes is not None
    assert weights_bytes(arch) == arch.checkpoint_bytes
    # norms are replicated, so eight ranks hold a little more than an eighth each
    per_rank = weights_bytes(arch, tp=8)
    assert arch.checkpoint_bytes / 8 < per_rank < arch.checkpoint_bytes / 8 * 1.001


def test_rotary_table_spans_the_whole_context() -> None:
    assert rotary_table_bytes(MODELS["mistral-nemo-12b"]) == 250 * 2**20
    assert rotary_table_bytes(MODELS["deepseek-v3"]) == 163_840 * 64 * 2
