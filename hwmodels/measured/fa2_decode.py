"""Decode attention of FlashAttention-2, which Ampere parts run.

What sets it apart from Hopper's kernel, seen in A100's public tables (vLLM 0.14.0):

- Groups of query heads are folded into rows. With several KV heads and several sequences the
  result is copied back, 7 us more.
- It splits the KV by its own rule, and not at all without groups: eight heads of 131,072 tokens
  keep eight thread blocks busy for 3 ms.
- A thread block streams no more than 23 GB/s.

The form errs by 6.2 % median, 17.5 % at P90 on all rows of that table, the general one by 14.9 and
32.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from hwmodels.ops import DecodeAttention
from hwmodels.spec import GpuSpec

_KV_TILE = 128  # KV tokens of a step, for head dimensions up to 128
_HEADS_PER_BLOCK = 64
_MAX_SPLITS = 128
_BLOCKS_PER_SM = 2
_FULL = 0.8  # of the slots: from here on nothing is split
_GOOD = 0.85  # of the best wave efficiency: the least split that reaches it is taken
_ELEMENT_BYTES = 2.0
_L2_EDGE = 0.08  # width of the step from a warm to a cold L2, in L2 sizes
_WARM_SHARE = 0.95  # of the L2, up to which KV stays resident between launches


@dataclass(frozen=True, slots=True)
class Fa2DecodeFit:
    """Fitted parameters; `cta_s` is a thread block's least time, `copy_s` that of the copy back."""

    t0_s: float
    memory: float
    cta_s: float
    split_s: float
    p_norm: float
    per_query_head: float
    cta_bytes_per_s: float
    copy_s: float
    warm_bytes_per_s: float


def fa2_decode_s(
    op: DecodeAttention, fit: Fa2DecodeFit, gpu: GpuSpec, *, l2_warm: bool = False
) -> float:
    """Return the seconds of one layer's decode attention.

    Args:
        l2_warm: KV that fits the L2 is still there, as in benchmarks of a single kernel.
    """
    group, mean = op.heads / op.kv_heads, op.kv_tokens / op.seqs
    tiles = math.ceil(mean / _KV_TILE)
    blocks = op.seqs * op.kv_heads * math.ceil(group / _HEADS_PER_BLOCK)
    split = 1 if group == 1 else num_splits(blocks, _BLOCKS_PER_SM * gpu.num_sms, tiles)
    grid = blocks * split
    block_s = max(1.0, grid / gpu.num_sms) * fit.cta_s * (1 + fit.per_query_head * group)
    kv_bytes = op.kv_tokens * op.kv_bytes_per_token
    activations = _ELEMENT_BYTES * op.seqs * op.heads * (op.qk_dim + op.v_dim)
    hbm = fit.memory * gpu.hbm_bytes_per_s
    moved_s = (kv_bytes + activations) / hbm
    if l2_warm:
        room = (_WARM_SHARE * gpu.l2_bytes - kv_bytes) / (_L2_EDGE * gpu.l2_bytes)
        share = 1 / (1 + math.exp(-max(-60.0, min(60.0, room))))
        moved_s *= share * hbm / fit.warm_bytes_per_s + 1 - share
    longest = min(math.ceil(tiles / split) * _KV_TILE, mean) * op.kv_bytes_per_token / op.kv_heads
    rounds = max(1.0, grid / (_BLOCKS_PER_SM * gpu.num_sms))
    stream_s = max(moved_s, longest / fit.cta_bytes_per_s * rounds)
    copied = group > 1 and op.kv_heads > 1 and op.seqs > 1
    fixed_s = fit.t0_s + (fit.split_s if split > 1 else 0.0) + (fit.copy_s if copied else 0.0)
    p = fit.p_norm
    return float(fixed_s + (block_s**p + stream_s**p) ** (1 / p))


@lru_cache(maxsize=65536)
def num_splits(blocks: float, slots: int, tiles: int) -> int:
    """Return how many parts the KV is split into: the fewest whose waves are as good as full.

    Source: the rule that FlashAttention-2 documents for its split-KV kernel.
    """
    if blocks >= _FULL * slots:
        return 1
    efficiencies = {}
    for split in range(1, min(_MAX_SPLITS, slots, tiles) + 1):
        if split == 1 or math.ceil(tiles / split) != math.ceil(tiles / (split - 1)):
            waves = blocks * split / slots
            efficiencies[split] = waves / math.ceil(waves)
    least = _GOOD * max(efficiencies.values(), default=1.0)
    return next((split for split, full in efficiencies.items() if full >= least), 1)
