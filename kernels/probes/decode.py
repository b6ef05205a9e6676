"""Paged decode attention, asked about its memory: `decode_order` and `decode_l2`.

Axes: `block_tokens` of a KV block; `shuffled` 0: a sequence's blocks follow each other in memory,
1: they lie in random order over the pool; `seqs` of `context_tokens` each; `cold` 1 with the L2
flushed before each launch. 32 query heads, 8 KV heads of 128, 16 bits.
"""

from importlib import import_module

import torch

from kernels.case import Shape
from kernels.checks import check
from kernels.device import DeviceFacts
from kernels.probes.probe import Probe, ProbeError, crossed, ends_first, must_agree, sizes_of
from kernels.timing import L2State, Timer, Timing

_HEADS, _KV_HEADS, _DIM = 32, 8, 128
_SMALL_HEADS, _SMALL_KV_HEADS, _SMALL_DIM = 2, 1, 64
_BLOCK_TOKENS = 16
_RESERVE_BYTES = 8 * 2**30
_TOLERANCE = 2e-2
"""Of the largest element of the output; bfloat16 rounds to 8 bits."""


def _measure_order(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    block, shuffled, seqs, context = sizes_of(
        shape, DECODE_ORDER.axes, block_tokens=1, seqs=1, context_tokens=1
    )
    return _measure((seqs, context), block, bool(shuffled), L2State.COLD, device, timer)


def _measure_l2(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    seqs, context, cold = sizes_of(shape, DECODE_L2.axes, seqs=1, context_tokens=1)
    state = L2State.COLD if cold else L2State.WARM
    return _measure((seqs, context), _BLOCK_TOKENS, False, state, device, timer)


def _measure(
    batch: tuple[int, int],
    block_tokens: int,
    shuffled: bool,
    state: L2State,
    device: torch.device,
    timer: Timer,
) -> Timing:
    try:
        paged_decode = import_module("kernels.attention.paged_decode").paged_decode
    except ImportError as error:
        raise ProbeError(f"decode: paged attention isn't there ({error})") from None
    seqs, context = batch
    on_gpu = device.type == "cuda"
    kind = torch.bfloat16 if on_gpu else torch.float16
    heads, kv_heads, dim = (
        (_HEADS, _KV_HEADS, _DIM) if on_gpu else (_SMALL_HEADS, _SMALL_KV_HEADS, _SMALL_DIM)
    )
    tables = block_tables(seqs, context, block_tokens, shuffled, device)
    pool = (tables.numel(), block_tokens, kv_heads, dim)
    keys, values = (torch.empty(pool, dtype=kind, device=device).normal_() for _ in range(2))
    query = torch.randn(seqs, heads, dim, device=device).to(kind)
    lengths = torch.full((seqs,), context, dtype=torch.int32, device=device)
    out = torch.empty_like(query)
    timing = timer.time(
        lambda: paged_decode(
            query, keys, values, tables, lengths, max_context_tokens=context, out=out
        ),
        l2=state,
    )
    last = seqs - 1
    chosen = tables[last].long()
    rows = [cache[chosen].flatten(0, 1)[:context] for cache in (keys, values)]
    must_agree("decode", out[last], _attention(query[last], rows[0], rows[1]), _TOLERANCE)
    return timing


def block_tables(
    seqs: int, context_tokens: int, block_tokens: int, shuffled: bool, device: torch.device
) -> torch.Tensor:
    """Return int32 [seqs, blocks]: each block of a pool once, in order or shuffled."""
    check(seqs > 0 and context_tokens > 0, "an empty batch has no blocks; give it a token")
    each = -(-context_tokens // block_tokens)
    random = torch.Generator(device).manual_seed(0)
    total = seqs * each
    order = (
        torch.randperm(total, generator=random, device=device)
        if shuffled
        else torch.arange(total, device=device)
    )
    return order.to(torch.int32).view(seqs, each)


def _attention(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Attention of one sequence, [heads, dim] over [tokens, kv_heads, dim], in float32."""
    group = query.shape[0] // keys.shape[1]
    wide = [t.float().repeat_interleave(group, dim=1) for t in (keys, values)]
    logits = torch.einsum("hd,thd->ht", query.float(), wide[0]) / query.shape[1] ** 0.5
    return torch.einsum("ht,thd->hd", logits.softmax(-1), wide[1])


def _order_sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    batches = [(64, 8192), (8, 4096), (64, 1024), (8, 32768)]
    return crossed(
        [{"seqs": s, "context_tokens": n} for s, n in _fitting(batches, facts)],
        block_tokens=(16, 256, 8, 64, 32, 128),
        shuffled=(0, 1),
    )


def _l2_sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    seqs = 8
    token_bytes = 2 * 2 * _KV_HEADS * _DIM * seqs
    shares = (0.05, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 4.0)
    contexts = {max(64, round(share * facts.l2_bytes / token_bytes / 64) * 64) for share in shares}
    batches = [(seqs, context) for context in sorted(contexts)]
    return crossed(
        [{"seqs": s, "context_tokens": n} for s, n in ends_first(_fitting(batches, facts))],
        cold=(0, 1),
    )


def _fitting(batches: list[tuple[int, int]], facts: DeviceFacts) -> list[tuple[int, int]]:
    room = facts.memory_bytes - min(_RESERVE_BYTES, facts.memory_bytes // 2)
    return [(s, n) for s, n in batches if 2 * 2 * _KV_HEADS * _DIM * s * n <= room]


DECODE_ORDER = Probe(
    name="decode_order",
    axes=("block_tokens", "shuffled", "seqs", "context_tokens"),
    sweep=_order_sweep,
    small=crossed([{"seqs": 2, "context_tokens": 21}], block_tokens=[8, 16], shuffled=[0, 1]),
    measure=_measure_order,
    what="decode attention of one layer",
    box_s=45.0,
)

DECODE_L2 = Probe(
    name="decode_l2",
    axes=("seqs", "context_tokens", "cold"),
    sweep=_l2_sweep,
    small=crossed([{"seqs": 1, "context_tokens": 17}], cold=[0, 1]),
    measure=_measure_l2,
    what="decode attention of one layer",
    box_s=20.0,
)
