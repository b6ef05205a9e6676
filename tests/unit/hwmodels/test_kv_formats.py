"""What stands in for KV formats that no table holds."""

from dataclasses import replace

import pytest

from hwmodels.cost import cost_model_for
from hwmodels.dtypes import KV_BYTES, KV_SCALE_BYTES
from hwmodels.gpus import GPUS
from hwmodels.kv_formats import TRITON_PREFILL, prefill_factor, priced_decode
from hwmodels.ops import DecodeAttention, PrefillAttention, Source

H100, A100 = cost_model_for("h100_sxm"), cost_model_for("a100_sxm")


def decode(dtype, seqs=8, context=4096):
    per_token = 2 * 8 * (128 * KV_BYTES[dtype] + KV_SCALE_BYTES.get(dtype, 0))
    return DecodeAttention(seqs, seqs * context, context, 32, 8, 128, 128, per_token, dtype)


def test_eight_bits_cost_what_fp8_does_and_the_bytes_of_their_scales():
    fp8, scaled = (H100.cost(decode(d)).seconds for d in ("fp8", "int8_per_token_head"))
    assert fp8 < scaled < 1.04 * fp8


def test_four_bits_are_never_faster_than_eight():
    for model in (H100, A100):
        for context in (128, 4096, 65536):
            eight = model.cost(decode("int8_per_token_head", context=context)).seconds
            assert model.cost(decode("int4_per_token_head", context=context)).seconds == eight


@pytest.mark.parametrize("dtype", sorted(KV_SCALE_BYTES))
def test_their_prices_say_that_they_are_borrowed(dtype):
    assert H100.cost(decode(dtype)).source is Source.EXTRAPOLATED
    prompt = PrefillAttention(2048, 2048, 32, 8, 128, 128, dtype)
    assert H100.cost(prompt).source is Source.EXTRAPOLATED


def test_measured_formats_stand_for_themselves():
    for dtype in ("bf16", "fp8", "int8"):
        assert priced_decode(decode(dtype)) is not None
        assert priced_decode(decode(dtype)).kv_dtype == dtype
        assert H100.cost(decode(dtype)).seconds > 0
    assert H100.cost(decode("fp8")).source is not Source.EXTRAPOLATED


def test_triton_prefill_is_slower_on_amperes_kernels_alone():
    assert (
        prefill_factor("int8_per_token_head", GPUS["a100_sxm"])
        == TRITON_PREFILL["int8_per_token_head"]
    )
    assert prefill_factor("int8_per_token_head", GPUS["h100_sxm"]) == 1.0
    assert prefill_factor("fp8", GPUS["a100_sxm"]) == 1.0
    prompt = PrefillAttention(16384, 16384, 32, 8, 128, 128)
    plain, scaled = (
        A100.cost(replace(prompt, kv_dtype=d)).seconds for d in ("bf16", "int8_per_token_head")
    )
    assert 3.5 < scaled / plain < 4.5


def test_the_factor_is_that_of_the_published_seconds():
    """RTX 3090: tokens/s of prefill at 1k and 16k, and seconds of 100k; see `TRITON_PREFILL`."""

    def slope(at_16k, at_100k_s):
        return (at_100k_s / 100e3 - 1 / at_16k) / ((100e3 - 16e3) / 2)

    flashinfer = slope(1601, 100)
    for dtype, triton in (
        ("int8_per_token_head", slope(1187, 231)),
        ("int4_per_token_head", slope(1194, 220)),
    ):
        assert triton / flashinfer == pytest.approx(TRITON_PREFILL[dtype], rel=0.05)


@pytest.mark.parametrize("dtype", ["fp8", "int8"])
def test_eight_bit_kv_on_flash_attention_2_is_hoppers_ratio(dtype):
    # 8 x 512 tokens: 17 MB of bf16 KV a layer, where FP8 never gained on Hopper.
    small = [A100.cost(decode(d, 8, 512)).seconds for d in ("bf16", dtype)]
    assert 1.0 < small[1] / small[0] < 1.12
    large = [A100.cost(decode(d, 64, 8192)).seconds for d in ("bf16", dtype)]
    assert large[1] / large[0] == pytest.approx(0.60, abs=0.01)
