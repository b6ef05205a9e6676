"""In which number formats weights are stored, products are computed and the KV cache is kept."""

from hwmodels.dtypes import KV_SCALE_BYTES
from twin.errors import InputError
from twin.llm.arch import ModelArch

# Bytes of one element, without the scales that go with groups of elements.
ELEMENT_BYTES: dict[str, float] = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5, "mxfp4": 0.5}

# Bytes of one scale: FP8 and INT8 keep float32, INT4 a float16, MXFP4 an 8-bit exponent.
SCALE_BYTES: dict[str, int] = {"fp8": 4, "int8": 4, "int4": 2, "mxfp4": 1}

KV_DTYPES: dict[str, str] = {
    "auto": "bf16",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "bf16",
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "int8": "int8",
    "fp8_per_token_head": "fp8_per_token_head",
    "int8_per_token_head": "int8_per_token_head",
    "int4_per_token_head": "int4_per_token_head",
}

KV_DTYPE_SPELLINGS: dict[str, dict[str, str]] = {
    "vllm": {
        name: name
        for name in (
            "auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2",
            "fp8_per_token_head", "int8_per_token_head", "int4_per_token_head",
        )
    },
    "sglang": {
        "auto": "auto", "bfloat16": "bfloat16",
        "fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2",
    },
    "trtllm": {
        "auto": "auto", "bfloat16": "bfloat16", "float16": "float16",
        "fp8": "fp8", "fp8_e4m3": "fp8",
    },
}  # fmt: skip
"""By engine: a `kv_cache_dtype` of the policy, and how the engine's own option spells it.

Sources: vLLM 0.33.0 `CacheConfig.cache_dtype`; SGLang's `--kv-cache-dtype` and its page on
quantised KV caches; TensorRT-LLM's LLM API, `KvCacheConfig.dtype` (its INT8 KV is a checkpoint's
business in the older backend). A dtype without a spelling is none of that engine's.
"""

KV_DTYPE_ENGINES: dict[str, frozenset[str]] = {
    dtype: frozenset(e for e, known in KV_DTYPE_SPELLINGS.items() if dtype in known)
    for dtype in KV_DTYPES
    if dtype != "bf16"
}
"""By `kv_cache_dtype`: the engines that have it. None has `int8`, a scale for a whole tensor."""

KV_DTYPE_NEEDS: dict[str, tuple[int, int]] = {"fp8_per_token_head": (8, 9)}
"""Least compute capability: Triton attention reads FP8 from sm_89 on (vLLM's `TritonAttentionImpl`
refuses others). Plain FP8 KV runs on Ampere too, by FlashInfer."""

# What multiplies: 4-bit weights are expanded to bf16 inside the kernel (no 4-bit tensor-core path
# up to Hopper); INT8 checkpoints are taken as W8A8.
_COMPUTE_DTYPES = {"bf16": "bf16", "fp8": "fp8", "int8": "int8", "int4": "bf16", "mxfp4": "bf16"}


def weight_dtype(arch: ModelArch, quantization: str | None = None) -> str:
    """Return how the linear layers' weights lie in GPU memory.

    Args:
        arch: the network; its `checkpoint_dtype` is what is on disk.
        quantization: None: as the checkpoint; "none": bf16, as a checkpoint must be already; fp8,
            int8 or int4: quantised at load.

    Raises:
        InputError: unknown format, or another quantisation than the checkpoint already has.
    """
    if quantization is None:
        return _known(arch.checkpoint_dtype, f"checkpoint dtype of {arch.name}")
    asked = "bf16" if quantization == "none" else _known(quantization, "quantization")
    if arch.checkpoint_dtype not in ("bf16", asked):
        raise InputError(
            f"quantization {quantization!r} asked of {arch.name}, whose checkpoint is already "
            f"{arch.checkpoint_dtype}",
            remedy="leave quantization out, or name a bf16 checkpoint",
        )
    return asked


def kv_dtype(kv_cache_dtype: str) -> str:
    """Return the stored format, a key of `hwmodels.dtypes.KV_BYTES`.

    Args:
        kv_cache_dtype: in vLLM's spelling.
    """
    try:
        return KV_DTYPES[kv_cache_dtype]
    except KeyError:
        raise InputError(
            f"unknown kv_cache_dtype {kv_cache_dtype!r}",
            remedy="choose one of " + ", ".join(sorted(KV_DTYPES)),
        ) from None


def kv_dtype_refusal(
    kv_cache_dtype: str, arch: ModelArch, compute_capability: tuple[int, int]
) -> str | None:
    """Return why a network or GPU cannot have a KV dtype, one line; None: it can."""
    if kv_dtype(kv_cache_dtype) not in KV_SCALE_BYTES:
        return None
    if arch.mla is not None:
        return f"{kv_cache_dtype} scales heads; {arch.name} keeps one latent for all of them"
    least = KV_DTYPE_NEEDS.get(kv_cache_dtype, (0, 0))
    if compute_capability < least:
        return (
            f"{kv_cache_dtype} needs compute capability {least[0]}.{least[1]}, "
            f"this GPU has {compute_capability[0]}.{compute_capability[1]}"
        )
    return None


def resolve_dtypes(
    arch: ModelArch,
    quantization: str | None,
    kv_cache_dtype: str = "auto",
    gpu_supports_fp8: bool = True,
) -> tuple[str, str, str]:
    """Return (weight dtype, compute dtype, KV dtype), each one of bf16, fp8, int8, int4, mxfp4.

    FP8 weights on a GPU without FP8 tensor cores (Ampere) are used as vLLM does: stored as FP8,
    multiplied in bf16.
    """
    stored = weight_dtype(arch, quantization)
    computed = _COMPUTE_DTYPES[stored]
    if computed == "fp8" and not gpu_supports_fp8:
        computed = "bf16"
    return stored, computed, kv_dtype(kv_cache_dtype)


def stored_bytes(rows: float, columns: int, dtype: str, block: tuple[int, int] | None) -> float:
    """Return bytes of a rows×columns matrix of `dtype`, its scales included.

    `rows` may be fractional where a rank holds a share of a matrix.
    """
    elements = rows * columns
    payload = elements * ELEMENT_BYTES[dtype]
    if dtype == "bf16" or (dtype == "fp8" and block is None):
        return payload
    block_rows, block_columns = block or (1, columns if dtype == "int8" else 128)
    if dtype == "mxfp4" and block is None:
        block_columns = 32  # OCP Microscaling Formats v1.0: one E8M0 scale for 32 elements
    return payload + SCALE_BYTES[dtype] * elements / (block_rows * block_columns)


def _known(dtype: str, what: str) -> str:
    if dtype not in ELEMENT_BYTES:
        raise InputError(
            f"unknown {what} {dtype!r}", remedy="choose one of " + ", ".join(ELEMENT_BYTES)
        )
    return dtype
