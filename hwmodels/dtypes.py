"""Bytes that a stored number takes."""

# 4-bit numbers with their scales: int4 in groups of 128 with a 16-bit scale and zero point, mxfp4
# in groups of 32 with an 8-bit scale: 4.25 bits each.
WEIGHT_BYTES: dict[str, float] = {
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 4.25 / 8,
    "mxfp4": 4.25 / 8,
}

KV_BYTES: dict[str, float] = {
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 4.25 / 8,
    "fp8_per_token_head": 1.0,
    "int8_per_token_head": 1.0,
    "int4_per_token_head": 0.5,
}

KV_SCALE_BYTES: dict[str, int] = {
    "fp8_per_token_head": 4,
    "int8_per_token_head": 4,
    "int4_per_token_head": 4,
}
"""Of the scale that each token keeps for each head, of its key and of its value: float32, stored
behind the numbers (vLLM's `TritonAttentionBackend.customize_spec`)."""
