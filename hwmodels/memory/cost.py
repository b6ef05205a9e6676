"""A cost model whose attention also pays for the way the KV cache is laid out."""

from dataclasses import replace

from hwmodels.memory.fits import MemoryFit
from hwmodels.memory.layout import KvLayout
from hwmodels.memory.tlb import Translation, translation
from hwmodels.ops import Bound, CostModel, DecodeAttention, Op, OpCost, PrefillAttention, Source


class LaidOutCostModel:
    """Another cost model's durations, and what address translation adds to attention.

    Tables were measured over pools that translation does not slow: one a layer, of few GB. What
    another layout asks of the TLBs runs beside the kernel; only what outlasts it is added.

    Args:
        base: prices the operations.
        layout: of the KV pool of one rank.
        fit: constants of the GPU's memory hierarchy.
        clock_hz: of its SMs.
    """

    def __init__(self, base: CostModel, layout: KvLayout, fit: MemoryFit, clock_hz: float) -> None:
        self.base, self.layout, self.fit, self._clock_hz = base, layout, fit, clock_hz

    def cost(self, op: Op) -> OpCost:
        """Return the cost of one operation."""
        cost = self.base.cost(op)
        if not isinstance(op, DecodeAttention | PrefillAttention) or not op.kv_tokens:
            return cost
        repeat = max(1, op.repeat)
        added_s = self.translation(op).added_s(cost.seconds / repeat) * repeat
        if added_s <= 0:
            return cost
        return replace(
            cost, seconds=cost.seconds + added_s, bound=Bound.TLB, source=Source.EXTRAPOLATED
        )

    def translation(self, op: DecodeAttention | PrefillAttention) -> Translation:
        """Return what translation asks of one layer's kernel."""
        return translation(self.layout, self.blocks(op), self.fit, self._clock_hz)

    def blocks(self, op: DecodeAttention | PrefillAttention) -> float:
        """Return the KV blocks that one layer's kernel reads.

        Where in its last block each sequence ends isn't known: in the middle, at the mean, but
        a sequence has no fewer than one block.
        """
        size, seqs = self.layout.block_tokens, 1
        seen = op.kv_tokens
        if isinstance(op, DecodeAttention):
            seqs = op.seqs
        elif op.window is not None:
            seen = min(seen, op.query_tokens + op.window)
        return max(float(seqs), seen / size + seqs * (size - 1) / (2 * size))

    def launch_floor_s(self, kernels: int, *, graph: bool) -> float:
        """Return the least seconds a step of that many kernels takes to launch."""
        return self.base.launch_floor_s(kernels, graph=graph)
