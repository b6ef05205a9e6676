"""KV formats with a scale a token and head, as vLLM's Triton attention keeps them.

No public kernel table holds them. What prices them is borrowed, and every such price is marked
`extrapolated`:

- Decode: the kernel reads its bytes and scales in the form that FP8 KV was measured in, table and
  all where a GPU has one; unpacking is taken to cost what FP8's conversion does.
- `int4_per_token_head` is priced at the bytes of 8 bits. Where both were measured it was never
  the faster: 41.4 against 40.8 ms a token at 100k context (RTX 3090), 172 against 180 tokens/s
  (RTX 5090, vLLM pull request 39074), TPOT 105 against 97 ms (pull request 40633).
- Prefill: every number is turned into bf16 in software, on Hopper too. On parts with Ampere's
  kernels Triton's attention is slower than FlashInfer's besides: `TRITON_PREFILL`.
"""

from dataclasses import replace

from hwmodels.dtypes import KV_BYTES, KV_SCALE_BYTES
from hwmodels.ops import DecodeAttention
from hwmodels.spec import GpuSpec

PRICED_AS = dict.fromkeys(KV_SCALE_BYTES, "fp8")
"""The measured format that stands in for one that was not."""

# Prefill attention over FlashInfer's with FP8 KV on an RTX 3090 (heads of 256, vLLM 0.28.0), by
# straight lines through the public seconds a token at 1k, 16k and 100k, which they meet within
# 0.7 %: github.com/syv-ai/qwen38-27b-rtx3090. FP8 is unmeasured and takes INT8's.
TRITON_PREFILL = {
    "int8_per_token_head": 3.98,
    "fp8_per_token_head": 3.98,
    "int4_per_token_head": 3.70,
}

_WARP_GROUPS = (9, 10)
"""Major compute capabilities with kernels of another kind: no such figure is public there."""


def priced_decode(op: DecodeAttention) -> DecodeAttention:
    """Return the operation whose price stands in for `op`'s: itself unless it has scales."""
    stand_in = PRICED_AS.get(op.kv_dtype)
    if stand_in is None:
        return op
    numbers = op.kv_heads * (op.qk_dim + op.v_dim)
    least = numbers * KV_BYTES[stand_in] + 2 * op.kv_heads * KV_SCALE_BYTES[op.kv_dtype]
    return replace(
        op, kv_dtype=stand_in, kv_bytes_per_token=max(op.kv_bytes_per_token, float(least))
    )


def prefill_factor(kv_dtype: str, gpu: GpuSpec) -> float:
    """Return what prefill attention takes longer than its form for the kernels' sake."""
    if gpu.compute_capability[0] in _WARP_GROUPS:
        return 1.0
    return TRITON_PREFILL.get(kv_dtype, 1.0)


def converts(kv_dtype: str, gpu: GpuSpec) -> bool:
    """Return whether prefill attention turns KV into bf16 in software."""
    if kv_dtype in PRICED_AS:
        return True
    return kv_dtype != "bf16" and kv_dtype not in gpu.flops_per_s
