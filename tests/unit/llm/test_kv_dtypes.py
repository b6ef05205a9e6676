"""KV formats with a scale a token and head: bytes, engines, what refuses them."""

import typing

import pytest

from hwmodels.dtypes import KV_SCALE_BYTES
from twin.errors import InputError
from twin.llm.kv_cache import kv_bytes_per_token_per_gpu
from twin.llm.kv_layout import KvPool, kv_layout
from twin.llm.models import MODELS
from twin.llm.quantization import (
    KV_DTYPE_ENGINES,
    KV_DTYPE_SPELLINGS,
    KV_DTYPES,
    kv_dtype_refusal,
)
from twin.load import scenario_from
from twin.policy import KvCacheDtype

LLAMA = MODELS["llama-3.1-8b"]
SCENARIO = {
    "schema_version": 1,
    "llm": "llama-3.1-8b",
    "gpu": "h100_sxm",
    "workload": {
        "kind": "closed_loop",
        "concurrency": 4,
        "num_requests": 8,
        "prompt_tokens": 512,
        "output_tokens": 16,
    },
}


def scenario(dtype, **more):
    return scenario_from({**SCENARIO, "policy": {"kv_cache_dtype": dtype}, **more})


@pytest.mark.parametrize(
    ("dtype", "row_bytes"),
    [
        ("auto", 256),
        ("int8", 128),
        ("fp8", 128),
        ("int8_per_token_head", 132),
        ("fp8_per_token_head", 132),
        ("int4_per_token_head", 68),
    ],
)
def test_bytes_of_a_token_with_its_scales(dtype, row_bytes):
    assert kv_bytes_per_token_per_gpu(LLAMA, dtype) == 32 * 2 * 8 * row_bytes
    assert kv_bytes_per_token_per_gpu(LLAMA, dtype, tp=4) == 32 * 2 * 2 * row_bytes


@pytest.mark.parametrize(
    ("dtype", "published"), [("int8_per_token_head", 1.95), ("int4_per_token_head", 3.86)]
)
def test_capacity_is_what_an_engine_found(dtype, published):
    """Qwen3.5-35B-A3B, heads of 256, on an RTX 5090 (vLLM pull request 39074)."""
    row = {"int8_per_token_head": 256 + 4, "int4_per_token_head": 128 + 4}[dtype]
    assert KV_SCALE_BYTES[dtype] == 4
    assert 512 / row == pytest.approx(published, rel=0.011)


@pytest.mark.parametrize("dtype", sorted(KV_SCALE_BYTES))
def test_the_layout_holds_as_many_bytes(dtype):
    layout = kv_layout(LLAMA, KvPool(dtype, 16, 10))
    assert layout.token_bytes == kv_bytes_per_token_per_gpu(LLAMA, dtype)


def test_a_pool_holds_more_tokens():
    plain = scenario("auto").num_gpu_blocks
    assert scenario("fp8").num_gpu_blocks / plain == pytest.approx(2, abs=0.01)
    assert scenario("int8_per_token_head").num_gpu_blocks / plain == pytest.approx(
        256 / 132, abs=0.01
    )
    assert scenario("int4_per_token_head").num_gpu_blocks / plain == pytest.approx(
        256 / 68, abs=0.02
    )


def test_every_dtype_of_the_policy_has_its_engines():
    assert set(typing.get_args(KvCacheDtype)) == set(KV_DTYPE_ENGINES)
    assert set(KV_DTYPE_ENGINES) < set(KV_DTYPES)
    assert KV_DTYPE_ENGINES["int4_per_token_head"] == {"vllm"}
    assert KV_DTYPE_ENGINES["fp8"] == {"vllm", "sglang", "trtllm"}
    assert not KV_DTYPE_ENGINES["int8"]
    assert KV_DTYPE_SPELLINGS["sglang"]["fp8"] == "fp8_e4m3"


def test_heads_are_scaled_where_there_are_heads():
    latent = MODELS["deepseek-v3"]
    assert "latent" in kv_dtype_refusal("int8_per_token_head", latent, (9, 0))
    assert kv_dtype_refusal("fp8", latent, (9, 0)) is None


def test_triton_reads_fp8_from_ada_on():
    assert kv_dtype_refusal("fp8_per_token_head", LLAMA, (8, 9)) is None
    assert "8.9" in kv_dtype_refusal("fp8_per_token_head", LLAMA, (8, 6))
    assert kv_dtype_refusal("int8_per_token_head", LLAMA, (8, 0)) is None
    with pytest.raises(InputError, match=r"kv_cache_dtype: fp8_per_token_head needs .* 8\.9"):
        scenario("fp8_per_token_head", gpu="a100_sxm")
