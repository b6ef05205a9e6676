"""Latency of a pointer chase by footprint and stride: L2 near and far, DRAM, and each TLB level."""

from dataclasses import dataclass

from hwmodels.memory.fits import MemoryFit
from hwmodels.memory.l2 import held_share, hit_cycles, near_share
from hwmodels.memory.units import LINE_BYTES, SECTOR_BYTES
from hwmodels.spec import GpuSpec

_SEEN_FLAT_BYTES = 2.25e9  # A100 and GH200 chases show no step up to here


@dataclass(frozen=True, slots=True)
class ChaseLatency:
    """Mean cycles of one load of a chase by one warp, L1 bypassed.

    Attributes:
        data_cycles: L2 or DRAM.
        translation_cycles: on top, for TLB misses.
        l2_share: of the loads that are L2 hits.
    """

    data_cycles: float
    translation_cycles: float
    l2_share: float

    @property
    def cycles(self) -> float:
        """The whole latency."""
        return self.data_cycles + self.translation_cycles


def chase_latency(
    footprint_bytes: float, stride_bytes: int, fit: MemoryFit, gpu: GpuSpec
) -> ChaseLatency | None:
    """Return the latency of a random cyclic chase; None: a constant it needs is unknown.

    One load a stride; strides below a sector find the rest of it in the L2. A stride of a page
    keeps few lines, so that the L2 serves all and translation alone shows.
    """
    if stride_bytes < 1 or footprint_bytes < stride_bytes:
        raise ValueError(f"a chase of {footprint_bytes:g} B in strides of {stride_bytes} B")
    loads = footprint_bytes / stride_bytes
    held_bytes = loads * min(stride_bytes, LINE_BYTES)
    hit = hit_cycles(held_bytes, fit, gpu)
    if hit is None or fit.dram_cycles is None:
        return None
    share = held_share(held_bytes, gpu.l2_bytes)
    repeats = max(1.0, SECTOR_BYTES / stride_bytes)  # loads of one sector
    from_dram = (1 - share) / repeats
    near = (1 - from_dram) * near_share(held_bytes, gpu)
    extra = _translation_cycles(footprint_bytes, stride_bytes, near, fit)
    if extra is None:
        return None
    return ChaseLatency((1 - from_dram) * hit + from_dram * fit.dram_cycles, extra, 1 - from_dram)


def _translation_cycles(
    footprint_bytes: float, stride_bytes: int, near: float, fit: MemoryFit
) -> float | None:
    """Return what TLB misses add to the mean load."""
    page = fit.page_bytes
    span = footprint_bytes if stride_bytes <= page else footprint_bytes / stride_bytes * page
    levels = (
        # The plateaus of far L2 and DRAM were measured beyond the first level's reach and hold
        # its miss; near hits were not.
        (fit.tlb_l1_reach_bytes, fit.tlb_l1_miss_cycles, near),
        (fit.tlb_l2_reach_bytes, fit.tlb_l2_miss_cycles, 1.0),
        (fit.tlb_l3_reach_bytes, fit.walk_cycles, 1.0),
    )
    total = 0.0
    for index, (reach, penalty, counted) in enumerate(levels):
        if reach is None:
            if footprint_bytes <= _SEEN_FLAT_BYTES and index:
                continue
            return None
        # An entry of the outer levels stands for many pages, used or not.
        missed = 1 - held_share(span if index == 0 else footprint_bytes, reach)
        if missed and penalty is None:
            return None
        total += missed * counted * (penalty or 0.0)
    return total
