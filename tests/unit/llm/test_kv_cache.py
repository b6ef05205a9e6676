"""KV bytes of a token against the figures logs imply."""

import pytest

from twin.errors import InputError
from twin.llm.kv_cache import block_bytes, kv_bytes_per_token_per_gpu, window_saving
from twin.llm.models import MODELS


@pytest.mark.parametrize(
    ("name", "tp", "dtype", "expected"),
    [
        ("llama-2-7b", 1, "auto", 524_288),
        ("llama-2-70b", 4, "auto", 81_920),
        ("llama-3.1-8b", 1, "auto", 131_072),
        ("llama-3.1-70b", 1, "auto", 327_680),
        ("llama-3.1-8b", 1, "fp8", 65_536),
        ("mistral-nemo-12b", 1, "auto", 163_840),
        ("qwen2.5-7b", 1, "auto", 57_344),
        ("qwen3-235b-a22b-fp8", 4, "auto", 48_128),
        ("llama-3.1-405b-fp8", 8, "auto", 64_512),
        ("deepseek-v3", 1, "auto", 61 * 576 * 2),
    ],
)
def test_bytes_a_token(name: str, tp: int, dtype: str, expected: int) -> None:
    assert kv_bytes_per_token_per_gpu(MODELS[name], dtype, tp) == expected


def test_heads_are_replicated_beyond_their_number() -> None:
    arch = MODELS["llama-3.1-8b"]
    assert kv_bytes_per_token_per_gpu(arch, tp=8) == kv_bytes_per_token_per_gpu(arch, tp=16)
    assert kv_bytes_per_token_per_gpu(arch, tp=8) * 2 == kv_bytes_per_token_per_gpu(arch, tp=4)


def test_mla_latent_is_on_every_rank() -> None:
    arch = MODELS["deepseek-v3"]
    assert kv_bytes_per_token_per_gpu(arch, tp=8) == kv_bytes_per_token_per_gpu(arch)


def test_block_and_pipeline() -> None:
    arch = MODELS["llama-3.1-8b"]
    assert block_bytes(arch, 16) == 2 * 2**20
    assert block_bytes(arch, 16, pp=3) == 16 * 11 * 4096  # ceil(32 / 3) layers
    with pytest.raises(InputError, match="block_size"):
        block_bytes(arch, 0)
    with pytest.raises(InputError, match="kv_cache_dtype"):
        block_bytes(arch, 16, "fp7")


def test_window_saving() -> None:
    assert window_saving(MODELS["llama-3.1-8b"], 4096, 2048) == 1.0
    arch = MODELS["gpt-oss-20b"]
    assert window_saving(arch, 2000, 2048) == 1.0  # shorter than window and one step
    kept = 127 + 2048
    expected = 24 * 131_072 / (12 * 131_072 + 12 * kept)
    assert window_saving(arch, 131_072, 2048) == pytest.approx(expected)
