"""What quantisation costs in precision, and what is published of what that costs in answers."""

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
        error: relative L2 error on Gaussian data: the floor, whatever the network.
        grain: how many values share a scale, in words.
        evidence: what was published of its effect on answers.
    """

    error: float
    grain: str
    evidence: tuple[Evidence, ...] = ()


LOSSLESS = Loss(0.0, "as the checkpoint")

KV_LOSS: dict[str, Loss] = {
    "auto": LOSSLESS,
    "bfloat16": LOSSLESS,
    "float16": LOSSLESS,
    "fp8": Loss(0.027, "a tensor"),
    "fp8_e4m3": Loss(0.027, "a tensor"),
    "fp8_e5m2": Loss(0.053, "a tensor"),
    "int8": Loss(0.006, "128 values"),
    "int8_per_token_head": Loss(0.006, "a token and head of 128 values"),
    "fp8_per_token_head": Loss(0.027, "a token and head of 128 values"),
    "int4_per_token_head": Loss(0.100, "a token and head of 128 values"),
}

WEIGHT_LOSS: dict[str, Loss] = {
    "none": LOSSLESS,
    "fp8": Loss(0.027, "a tensor"),
    "int8": Loss(0.009, "an output row"),
    "int4": Loss(0.100, "128 values of a row"),
}


def kv_error(dtype: object) -> float:
    """Return the relative error of KV in a `kv_cache_dtype`."""
    return KV_LOSS[str(dtype)].error


def weight_error(name: object) -> float:
    """Return the relative error of weights in a `quantization`; None: none beyond the checkpoint's."""
    return 0.0 if name is None else WEIGHT_LOSS[str(name)].error
