"""What quantisation costs in precision, and what is published of what that costs in answers.

The errors are floors: those of rounding alone, computed on Gaussian data (`tests/unit/llm/
test_quality.py` computes them again). Keys and weights of real networks have outliers, so that
their errors are larger, and what an error does to answers differs from network to network.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """A published finding.

    Attributes:
        text: what was found.
        source: where.
    """

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Loss:
    """What a number format loses.

    Attributes:
        error: relative L2 error on Gaussian data, at least.
        grain: how many values share a scale, in words.
        evidence: what was published of its effect on answers.
    """

    error: float
    grain: str
    evidence: tuple[Evidence, ...] = ()


_FP8_HOPPER = Evidence(
    "needle retrieval at 128k tokens fell from 91 % to 13 % on Hopper with FP8 attention that adds "
    "up in one level, and was 89 % with two; benchmarks of several networks kept 94 to 99 %",
    "vLLM blog, The State of FP8 KV-Cache and Attention Quantization in vLLM, 2026-04-22",
)
_FP8_QWEN = Evidence(
    "Qwen2.5-7B with keys and values in FP8: GSM8K 2.0 % instead of 90.5 %; with keys in 16 bits "
    "and values in FP8 90.0 %",
    "knlp.io, Memory-Traffic Saturation in Autoregressive Transformer Decode",
)
_KEYS = Evidence(
    "keys are more sensitive than values: 4-bit keys with 2-bit values 75.2 %, the other way round "
    "54.7 %",
    "arXiv 2502.15075, More for Keys, Less for Values",
)
_PER_TOKEN_HEAD = Evidence(
    "GSM8K of Qwen3.5-35B-A3B (n = 500, standard error about 2 points): 16 bits 95.6 %, FP8 "
    "96.6 %, INT8 95.6 %, INT4 96.8 %, each with a scale a token and head",
    "vLLM pull request 39074, comment of 2026-04-20",
)
_INT4_QWEN = Evidence(
    "GPQA of Qwen3-32B with a scale a token: 16 bits 62.3 %, INT8 62.5 %, INT4 47.3 %",
    "SGLang pull request 15285",
)
_FORMATS = Evidence(
    "Llama-3.1 family, over 500,000 evaluations: FP8 weights and activations lossless, INT8 of "
    "both 1 to 3 % lower when well tuned, INT4 weights alone on a par with INT8",
    "arXiv 2411.02355, Give Me BF16 or Give Me Death",
)

LOSSLESS = Loss(0.0, "as the checkpoint")
_FP8_KV = Loss(0.027, "a tensor", (_FP8_HOPPER, _FP8_QWEN))

KV_LOSS: dict[str, Loss] = {
    "auto": LOSSLESS,
    "bfloat16": LOSSLESS,
    "float16": LOSSLESS,
    "fp8": _FP8_KV,
    "fp8_e4m3": _FP8_KV,
    "fp8_e5m2": Loss(0.053, "a tensor", _FP8_KV.evidence),
    "int8": Loss(0.006, "128 values", (_KEYS,)),
    "fp8_per_token_head": Loss(0.027, "128 values of a token and head", (_PER_TOKEN_HEAD,)),
    "int8_per_token_head": Loss(
        0.006, "128 values of a token and head", (_PER_TOKEN_HEAD, _INT4_QWEN)
    ),
    "int4_per_token_head": Loss(
        0.100, "128 values of a token and head", (_PER_TOKEN_HEAD, _INT4_QWEN, _KEYS)
    ),
}
"""By `kv_cache_dtype`."""

WEIGHT_LOSS: dict[str, Loss] = {
    "none": LOSSLESS,
    "fp8": Loss(0.027, "a tensor", (_FORMATS,)),
    "int8": Loss(0.009, "4096 values of an output row", (_FORMATS,)),
    "int4": Loss(0.100, "128 values of a row", (_FORMATS,)),
}
"""By `quantization`."""

NOTHING_PUBLISHED = "nothing published is known here of what it does to answers"


def kv_error(dtype: object) -> float:
    """Return the relative error of KV in a `kv_cache_dtype`."""
    return KV_LOSS[str(dtype)].error


def weight_error(name: object) -> float:
    """Return the relative error of weights in a `quantization`; None: the checkpoint's own."""
    return 0.0 if name is None else WEIGHT_LOSS[str(name)].error


def caveats(kv_cache_dtype: str, quantization: str | None) -> tuple[str, ...]:
    """Return what has to be said of a policy's number formats, one sentence each; none: nothing.

    Args:
        kv_cache_dtype, quantization: of the policy.
    """
    asked = (
        (f"KV in {kv_cache_dtype}", KV_LOSS[kv_cache_dtype]),
        (
            f"Weights in {quantization}",
            LOSSLESS if quantization is None else WEIGHT_LOSS[quantization],
        ),
    )
    found = []
    for what, loss in asked:
        if loss.error > 0:
            known = "; ".join(f"{each.text} ({each.source})" for each in loss.evidence)
            found.append(
                f"{what}, a scale for {loss.grain}: relative error of at least {loss.error:.1%}; "
                f"published: {known or NOTHING_PUBLISHED}."
            )
    return tuple(found)
