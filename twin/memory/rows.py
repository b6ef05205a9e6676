"""One row a block size and KV dtype: sizes, traffic, translation, capacity."""

from dataclasses import dataclass

from hwmodels.memory.dram import block_sector_efficiency, decode_dram_bytes
from hwmodels.memory.fits import MemoryFit
from hwmodels.memory.layout import KvLayout
from hwmodels.memory.paging import KAPPA_MOST, least_kappa
from hwmodels.memory.tiles import padded
from hwmodels.memory.tlb import translation
from hwmodels.ops import CostModel
from twin.llm.arch import ModelArch
from twin.llm.attention_layers import AttentionLayers
from twin.memory.batch import DecodeBatch


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One block size and dtype. Attention is that of one layer in one decode step.

    Attributes:
        block_bytes: over all layers of a rank, scales included.
        fragment_bytes: the largest piece of a block in one place.
        bytes_per_page_visit: what a kernel reads of a block in one place.
        dram_bytes_per_token: what the kernel reads from DRAM, by KV token: whole sectors, scales
            included, held but empty tails left out.
        sector_efficiency: useful share of the sectors that cross from L2 to SM.
        tail_waste: empty share of the blocks held.
        pages: pages of 2 MiB that attention touches.
        l1_misses, l2_misses, walks: TLB look-ups that miss each level.
        kernel_s: attention over KV that lies well; `kernel_source` says how it was obtained
            (table, interpolated, physics, extrapolated).
        added_s: what translation adds; `added_least_s` and `added_most_s` within the intervals
            of what nobody measured.
        kappa_least, kappa_most: bounds of paged over contiguous time; None: unknown.
        capacity_tokens: what the pool holds.
    """

    block_tokens: int
    kv_dtype: str
    block_bytes: int
    fragment_bytes: int
    bytes_per_page_visit: int
    dram_bytes_per_token: float
    sector_efficiency: float
    tail_waste: float
    pages: float
    l1_misses: float
    l2_misses: float
    walks: float
    kernel_s: float
    kernel_source: str
    added_s: float
    added_least_s: float
    added_most_s: float
    kappa_least: float | None
    kappa_most: float
    capacity_tokens: int


@dataclass(frozen=True, slots=True)
class Pricing:
    """What prices one layer's attention: a cost model, and the GPU's constants and clock."""

    cost_model: CostModel
    fit: MemoryFit
    clock_hz: float
    arch: ModelArch
    tp: int

    def decode_s(self, batch: DecodeBatch, kv_dtype: str) -> tuple[float, str]:
        """Return one full-attention layer's decode over KV that lies well, and its source."""
        layers = AttentionLayers(self.arch, kv_dtype, self.tp)
        op = layers.decode(batch.seqs, batch.tokens, int(batch.lengths.max()))[0]
        repeat = layers.groups[0][1]
        cost = self.cost_model.cost(op)
        return cost.seconds / repeat, cost.source.value


def memory_row(layout: KvLayout, kv_dtype: str, batch: DecodeBatch, by: Pricing) -> MemoryRow:
    """Return what a layout means for a batch."""
    blocks = batch.blocks(layout.block_tokens)
    kernel_s, kernel_source = by.decode_s(batch, kv_dtype)
    found = translation(layout, blocks, by.fit, by.clock_hz)
    least, most = (
        translation(layout, blocks, fit, by.clock_hz).added_s(kernel_s) for fit in by.fit.extremes()
    )
    return MemoryRow(
        block_tokens=layout.block_tokens,
        kv_dtype=kv_dtype,
        block_bytes=layout.block_bytes,
        fragment_bytes=layout.fragment_bytes,
        bytes_per_page_visit=layout.bytes_per_page_visit,
        dram_bytes_per_token=decode_dram_bytes(layout, batch.lengths.tolist()) / batch.tokens,
        sector_efficiency=block_sector_efficiency(layout),
        tail_waste=batch.tail_waste(layout.block_tokens),
        pages=found.visits.pages,
        l1_misses=found.l1_misses,
        l2_misses=found.l2_misses,
        walks=found.walks,
        kernel_s=kernel_s,
        kernel_source=kernel_source,
        added_s=found.added_s(kernel_s),
        added_least_s=least,
        added_most_s=most,
        kappa_least=least_kappa(kernel_s, blocks, by.fit, by.clock_hz),
        kappa_most=KAPPA_MOST,
        capacity_tokens=layout.num_blocks * layout.block_tokens,
    )


BYTE_KINDS = ("useful", "scales", "tail", "sector_waste", "tile_padding")
"""Where bytes go, in the order they are shown."""


def bytes_by_kind(layout: KvLayout, batch: DecodeBatch) -> dict[str, float]:
    """Return where the bytes of one layer's KV go, by kind.

    `useful` and `scales` are read and needed. `tail` is held and empty. `sector_waste` crosses
    from the L2 beside what is needed. `tile_padding` is computed and masked by tiles of 128
    tokens; it is not read.
    """
    codes = layout.layer_block_bytes / layout.block_tokens
    scales = layout.scale_block_bytes / layout.block_tokens
    held = batch.blocks(layout.block_tokens) * layout.block_tokens
    tiles = sum(padded(length) for length in batch.lengths.tolist())
    needed = batch.tokens * (codes + scales)
    return {
        "useful": batch.tokens * codes,
        "scales": batch.tokens * scales,
        "tail": (held - batch.tokens) * (codes + scales),
        "sector_waste": needed / block_sector_efficiency(layout) - needed,
        "tile_padding": (tiles - batch.tokens) * (codes + scales),
    }
