"""What a read moves: lines, sectors, bytes from DRAM, and how much of its latency shows."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from hwmodels.memory.layout import KvLayout
from hwmodels.memory.touched import Segments, touched
from hwmodels.memory.units import LINE_BYTES, SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Traffic:
    """What byte ranges cost in grains.

    Attributes:
        useful_bytes: what was asked for.
        sectors, lines: touched, each counted once.
    """

    useful_bytes: int
    sectors: int
    lines: int

    @property
    def moved_bytes(self) -> int:
        """Bytes that come up from the L2, or from DRAM where the L2 has none of them."""
        return self.sectors * SECTOR_BYTES

    @property
    def sector_efficiency(self) -> float:
        """Useful share of what moves; 1 for no bytes."""
        return self.useful_bytes / self.moved_bytes if self.sectors else 1.0

    @property
    def line_efficiency(self) -> float:
        """Useful share of the lines that are held; 1 for no bytes."""
        return self.useful_bytes / (self.lines * LINE_BYTES) if self.lines else 1.0


def traffic(ranges: Segments) -> Traffic:
    """Return what regular byte ranges move."""
    return Traffic(
        ranges.count * ranges.segment,
        touched(ranges, SECTOR_BYTES),
        touched(ranges, LINE_BYTES),
    )


def head_traffic(layout: KvLayout, head: int = 0) -> Traffic:
    """Return what one head reads of one tensor of one full block, scales included.

    This is between L2 and SM. Sectors that heads share cross it once a head, but leave DRAM
    once, since the heads of a layer run at the same time.
    """
    rows = traffic(layout.rows_of_head(head))
    scales = layout.scales_of_head(head)
    if scales is None:
        return rows
    apart = traffic(scales)
    return Traffic(
        rows.useful_bytes + apart.useful_bytes,
        rows.sectors + apart.sectors,
        rows.lines + apart.lines,
    )


def block_sector_efficiency(layout: KvLayout) -> float:
    """Return the useful share of what all heads together move of one block."""
    parts = [head_traffic(layout, head) for head in range(layout.kv_heads)]
    return sum(p.useful_bytes for p in parts) / sum(p.moved_bytes for p in parts)


def tail_traffic(layout: KvLayout, tokens: int) -> Traffic:
    """Return what all heads leave DRAM for: the first `tokens` of one tensor of one block.

    Where heads come first within a block, each head's rows are a piece of their own.
    """
    if not 0 < tokens <= layout.block_tokens:
        raise ValueError(f"{tokens} tokens of a block of {layout.block_tokens}")
    return _rows_traffic(layout, tokens, layout.row_bytes)


def decode_dram_bytes(layout: KvLayout, lengths: Iterable[int]) -> int:
    """Return what one layer's attention of one decode step reads from DRAM, the L2 cold.

    Whole sectors of the KV of each sequence, scales included. What its last block holds beyond
    its last token stays there.

    Args:
        layout: of the pool.
        lengths: KV tokens of each sequence.
    """
    rests: Counter[int] = Counter()
    for length in lengths:
        rests[layout.block_tokens] += length // layout.block_tokens
        rests[length % layout.block_tokens] += 1
    return sum(
        times * layout.tensors * _block_bytes(layout, tokens)
        for tokens, times in rests.items()
        if tokens
    )


def _block_bytes(layout: KvLayout, tokens: int) -> int:
    """Bytes moved for the first tokens of one tensor of one block, scales included."""
    moved = tail_traffic(layout, tokens).moved_bytes
    if layout.has_scales:
        moved += _rows_traffic(layout, tokens, layout.row_scale_bytes).moved_bytes
    return moved


def _rows_traffic(layout: KvLayout, tokens: int, row_bytes: int) -> Traffic:
    """What rows of the first tokens of one block move, those of all heads together."""
    width = tokens * row_bytes
    if layout.arrangement == "NHD":
        return traffic(Segments(1, width * layout.kv_heads, width * layout.kv_heads))
    return traffic(Segments(layout.kv_heads, layout.block_tokens * row_bytes, width))


def exposed_latency_s(latency_cycles: float, outstanding_loads: float, clock_hz: float) -> float:
    """Return what each of many loads costs when so many are in flight together.

    A dependent chain (block table, then block) has one in flight and shows all of it.
    """
    if outstanding_loads < 1:
        raise ValueError(f"{outstanding_loads} loads in flight; at least 1 is")
    return latency_cycles / clock_hz / outstanding_loads


def loads_to_saturate(bytes_per_s: float, latency_s: float, load_bytes: int = LINE_BYTES) -> float:
    """Return how many loads must be in flight to reach a bandwidth (Little's law)."""
    return bytes_per_s * latency_s / load_bytes
