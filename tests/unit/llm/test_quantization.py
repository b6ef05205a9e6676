"""Which formats a deployment ends up with."""

from dataclasses import replace

import pytest

from twin.errors import InputError
from twin.llm.models import MODELS
from twin.llm.quantization import resolve_dtypes, stored_bytes, weight_dtype

DENSE, FP8, MXFP4 = MODELS["qwen3-8b"], MODELS["qwen3-8b-fp8"], MODELS["gpt-oss-20b"]


@pytest.mark.parametrize(
    ("arch", "quantization", "kv", "fp8", "expected"),
    [
        (DENSE, None, "auto", True, ("bf16", "bf16", "bf16")),
        (DENSE, "none", "bfloat16", True, ("bf16", "bf16", "bf16")),
        (DENSE, "fp8", "fp8_e4m3", True, ("fp8", "fp8", "fp8")),
        (DENSE, "fp8", "fp8", False, ("fp8", "bf16", "fp8")),
        (DENSE, "int8", "int8", True, ("int8", "int8", "int8")),
        (DENSE, "int4", "auto", True, ("int4", "bf16", "bf16")),
        (FP8, None, "auto", True, ("fp8", "fp8", "bf16")),
        (FP8, "fp8", "auto", True, ("fp8", "fp8", "bf16")),
        (MXFP4, None, "float16", True, ("mxfp4", "bf16", "bf16")),
    ],
)
def test_resolution(arch, quantization, kv, fp8, expected) -> None:  # type: ignore[no-untyped-def]
    assert resolve_dtypes(arch, quantization, kv, fp8) == expected


def test_a_quantised_checkpoint_is_not_quantised_again() -> None:
    with pytest.raises(InputError, match="already fp8"):
        weight_dtype(FP8, "int4")


def test_unknown_formats_are_named() -> None:
    with pytest.raises(InputError, match="fp6"):
        weight_dtype(DENSE, "fp6")
    with pytest.raises(InputError, match="checkpoint dtype"):
        weight_dtype(replace(DENSE, checkpoint_dtype="fp6"))
    with pytest.raises(InputError, match="kv_cache_dtype"):
        resolve_dtypes(DENSE, None, "fp6")


def test_stored_bytes_with_scales() -> None:
    assert stored_bytes(256, 128, "bf16", (128, 128)) == 2 * 256 * 128
    assert stored_bytes(256, 128, "fp8", (128, 128)) == 256 * 128 + 2 * 4
    assert stored_bytes(256, 128, "int8", None) == 256 * 128 + 256 * 4
    assert stored_bytes(256, 256, "int4", None) == 256 * 256 / 2 + 256 * 2 * 2
    assert stored_bytes(256, 128, "mxfp4", None) == 256 * 128 / 2 + 256 * 4
