"""Attention kernels: additive prefill, and decode with a floor per thread block.

Errors on held-out rows (median/P90 %): prefill H100 7.4/29.4, A100 6.6/37.9, H200 7.5/31.0;
decode H100 6.1/16.5. A100's decode fit is weak (15/28), H200's and all other parts' borrowed.
"""

import math

from hwmodels.efficiency import FP8_KV_RATIO, DecodeFit, PrefillFit
from hwmodels.interpolate import log_interpolate
from hwmodels.kv_formats import PRICED_AS, converts, prefill_factor, priced_decode
from hwmodels.ops import Bound, DecodeAttention, OpCost, PrefillAttention, Source
from hwmodels.spec import GpuSpec

TILE = 128  # query rows and KV columns of one tile
_HEADS_PER_BLOCK = 64  # query heads of one KV head that a decode block serves
_SPLIT_TOKENS = 128  # KV tokens below which decode doesn't split further
_NARROW_HEAD = 64
# A tensor core without FP8 needs its operands converted, in software, for every tile of queries
# that reads them: some four integer operations for a pair, of 64 a clock and SM. Unmeasured; an
# A100 with FP8 KV was 2.4-3.5 % slower to its first token at 4k-16k, this gives 1.6-4.0 %.
_CONVERTED_PER_CLOCK = 32
_ELEMENT_BYTES = 2.0  # queries, outputs and fresh keys are bf16


def causal_tiles(query_tokens: int, kv_tokens: int, window: int | None = None) -> tuple[int, int]:
    """Return (tiles of a chunk, tiles of its last query row) for one head.

    The chunk's queries are the last of `kv_tokens`; query tile i sees the cached context plus
    i tiles. A window caps what a row of tiles sees (one tile more, since it slides).
    """
    rows = math.ceil(query_tokens / TILE)
    context = math.ceil((kv_tokens - query_tokens) / TILE)
    last = math.ceil(kv_tokens / TILE)
    if window is None:
        return rows * (rows - 1) // 2 + (rows - 1) * context + last, last
    cap = math.ceil(window / TILE) + 1
    rising = min(max(cap - context, 0), rows - 1)
    seen = rising * (rising + 1) // 2 + rising * context
    return seen + (rows - 1 - rising) * cap + min(last, cap), min(last, cap)


def prefill_cost(op: PrefillAttention, fit: PrefillFit, gpu: GpuSpec) -> OpCost:
    """Return the cost of one chunk: start-up, activations, KV write and tiles add up.

    Chunks that attend to cached context were never in the tables the form was fitted on: there
    the tile count extrapolates it.
    """
    total, longest = causal_tiles(op.query_tokens, op.kv_tokens, op.window)
    seen = op.kv_tokens if op.window is None else min(op.kv_tokens, op.query_tokens + op.window)
    dims = op.qk_dim + op.v_dim
    tile_flops = 2 * dims * TILE * TILE
    activations = _ELEMENT_BYTES * dims * (op.query_tokens * op.heads + seen * op.kv_heads)
    written = _ELEMENT_BYTES * 2 * op.query_tokens * op.kv_heads * dims
    tensor = fit.tensor * (fit.narrow_head if op.qk_dim <= _NARROW_HEAD else 1.0)
    work = max(total * op.heads, gpu.num_sms * longest) * tile_flops
    compute_s = work / (tensor * gpu.flops_per_s["bf16"])
    memory_s = activations / fit.query_bytes_per_s + written / fit.kv_write_bytes_per_s
    if converts(op.kv_dtype, gpu):
        converted = total * TILE * dims * op.heads
        compute_s += converted / (_CONVERTED_PER_CLOCK * gpu.num_sms * gpu.boost_hz)
    compute_s *= prefill_factor(op.kv_dtype, gpu)
    fixed_s = 0.0 if op.joined else fit.t0_s
    if fixed_s >= max(compute_s, memory_s):
        bound = Bound.LAUNCH
    else:
        bound = Bound.COMPUTE if compute_s >= memory_s else Bound.HBM
    measured = fit.measured and op.kv_tokens == op.query_tokens and op.window is None
    measured = measured and op.kv_dtype not in PRICED_AS
    source = Source.PHYSICS if measured else Source.EXTRAPOLATED
    kernels = 0 if op.joined else op.repeat
    return OpCost((fixed_s + memory_s + compute_s) * op.repeat, bound, source, kernels)


def decode_cost(
    op: DecodeAttention, fit: DecodeFit, gpu: GpuSpec, tensor: float, *, l2_warm: bool = False
) -> OpCost:
    """Return the cost of one-token queries over their KV.

    Short context is limited by the number of thread blocks, long context by HBM, latent
    attention with many heads a KV head by tensor cores (`tensor` is their reached share).
    Lengths are taken as even: the fit could not identify what one long sequence costs.

    Args:
        l2_warm: price KV that fits the L2 as resident there, as benchmarks of a single kernel
            find it. In serving, other layers have evicted it.
    """
    if op.seqs <= 0:
        return OpCost(0.0, Bound.HBM, Source.PHYSICS, 0)
    asked, op = op, priced_decode(op)
    group = op.heads / op.kv_heads
    blocks = op.seqs * op.kv_heads * math.ceil(group / _HEADS_PER_BLOCK)
    mean = op.kv_tokens / op.seqs
    split = max(1, min(gpu.num_sms // blocks, math.ceil(mean / _SPLIT_TOKENS)))
    block_s = max(1.0, blocks * split / gpu.num_sms) * fit.cta_s * (1 + fit.per_query_head * group)
    ratio, kv_bytes = 1.0, op.kv_tokens * op.kv_bytes_per_token
    if op.kv_dtype in ("fp8", "int8"):
        kv_bytes *= 2
        ratio = log_interpolate(kv_bytes, FP8_KV_RATIO)
    activations = _ELEMENT_BYTES * op.seqs * op.heads * (op.qk_dim + op.v_dim)
    hbm = fit.memory * gpu.hbm_bytes_per_s
    moved_s = (kv_bytes + activations) / hbm
    if l2_warm:
        room = fit.warm_threshold * gpu.l2_bytes - kv_bytes
        share = 1 / (1 + math.exp(-max(-60.0, min(60.0, room / (0.08 * gpu.l2_bytes)))))
        moved_s *= share * hbm / fit.warm_bytes_per_s + 1 - share
    flops = 2.0 * op.kv_tokens * op.heads * (op.qk_dim + op.v_dim)
    compute_s = flops / (tensor * gpu.flops_per_s["bf16"])
    stream_s = max(moved_s, compute_s)
    fixed_s = fit.t0_s + (fit.split_s if split > 1 else 0.0)
    p = fit.p_norm
    seconds = (fixed_s + (block_s**p + stream_s**p) ** (1 / p)) * ratio
    if fixed_s + block_s >= stream_s:
        bound = Bound.LAUNCH
    else:
        bound = Bound.HBM if moved_s >= compute_s else Bound.COMPUTE
    measured = fit.measured and op is asked
    source = Source.PHYSICS if measured else Source.EXTRAPOLATED
    return OpCost(seconds * op.repeat, bound, source, op.repeat)
