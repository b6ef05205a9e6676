"""Bytes of KV cache that a token takes on one GPU.

Sliding-window layers are counted as if they kept every token. vLLM's hybrid cache manager hands
their old blocks back, so a long sequence takes less there than stated here; the *size of the pool
in tokens* that the engine prints is reckoned over all layers as here.
"""

from hwmodels.dtypes import KV_BYTES, KV_SCALE_BYTES
from twin.errors import InputError
from twin.llm.arch import ModelArch
from twin.llm.quantization import kv_dtype


def layer_kv_bytes_per_token(arch: ModelArch, kv_cache_dtype: str = "auto", tp: int = 1) -> int:
    """Return bytes that one layer keeps for one token on one GPU.

    K and V heads are dealt out to the ranks, at least one each: with more ranks than KV heads the
    bytes stop shrinking. Formats with a scale a token and head keep it of the key and of the value.
    MLA keeps one latent and one rotary key, whole on every rank.
    """
    dtype = kv_dtype(kv_cache_dtype)
    if arch.mla:
        return int((arch.mla.kv_lora_rank + arch.mla.qk_rope_dim) * KV_BYTES[dtype])
    heads = max(1, arch.num_kv_heads // tp)
    return 2 * heads * (int(arch.head_dim * KV_BYTES[dtype]) + KV_SCALE_BYTES.get(dtype, 0))


def kv_bytes_per_token_per_gpu(
    arch: ModelArch, kv_cache_dtype: str = "auto", tp: int = 1, pp: int = 1
) -> int:
    """Return bytes that the layers of one GPU keep for one token (fullest pipeline stage)."""
    layers = arch.num_layers if arch.num_kv_layers is None else arch.num_kv_layers
    return -(-layers // pp) * layer_kv_bytes_per_token(arch, kv_cache_dtype, tp)


def block_bytes(
    arch: ModelArch, block_size: int = 16, kv_cache_dtype: str = "auto", tp: int = 1, pp: int = 1
) -> int:
    """Return bytes of one block of `block_size` tokens on one GPU."""
    if block_size < 1:
        raise InputError(f"block_size is {block_size}", remedy="give at least 1 token")
    return block_size * kv_bytes_per_token_per_gpu(arch, kv_cache_dtype, tp, pp)


def window_saving(arch: ModelArch, num_tokens: int, max_num_batched_tokens: int) -> float:
    """Return KV of one sequence under full attention over what a window-aware engine keeps.

    1.0 without sliding-window layers. vLLM keeps window − 1 tokens plus those of the running
    step in such a layer (0.33.0, `SlidingWindowSpec`).
    """
    if arch.sliding_window is None or not arch.num_sliding_layers:
        return 1.0
    kept = min(num_tokens, arch.sliding_window - 1 + max_num_batched_tokens)
    full_layers = arch.num_layers - arch.num_sliding_layers
    return (
        arch.num_layers * num_tokens / (full_layers * num_tokens + arch.num_sliding_layers * kept)
    )
