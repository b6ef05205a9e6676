"""`MemoryFit`: the constants of one GPU's memory hierarchy, each with its source."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from hwmodels.memory.units import PAGE_BYTES

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """Constants of one GPU's memory hierarchy; None: unknown.

    Attributes:
        gpu: whose they are.
        page_bytes: of device memory.
        tlb_entry_pages: pages that one entry of the outer TLB levels stands for.
        tlb_l1_entries: of one SM, a page each.
        tlb_l2_reach_bytes, tlb_l3_reach_bytes: what the levels of a GPC and of the GPU cover.
        tlb_l1_miss_cycles, tlb_l2_miss_cycles: a miss that the next level answers.
        walk_cycles: a miss of the last level; so many `walkers` work at a time.
        l2_near_cycles, l2_far_cycles, dram_cycles: plateaus of a single warp's chase.
        l2_bytes_per_s, stream_bytes_per_s: reads by all SMs, from the L2 and from DRAM.
        alignment_speed: of products by alignment class (bytes), 1 for 16.
        offset_copy_slowdown: factor at most on a copy from a base off a line.
        shared_bytes_per_block, shared_bytes_per_sm: shared memory.
        sources: by field.
        intervals: (least, most) of fields that are priors or vary.
        measured: fields measured on this very part.
        pretended: fields that a dry run made up.
    """

    gpu: str
    page_bytes: int = PAGE_BYTES
    tlb_entry_pages: int = 16
    tlb_l1_entries: int | None = 16
    tlb_l2_reach_bytes: float | None = None
    tlb_l3_reach_bytes: float | None = None
    tlb_l1_miss_cycles: float | None = None
    tlb_l2_miss_cycles: float | None = None
    walk_cycles: float | None = None
    walkers: float | None = None
    l2_near_cycles: float | None = None
    l2_far_cycles: float | None = None
    dram_cycles: float | None = None
    l2_bytes_per_s: float | None = None
    stream_bytes_per_s: float | None = None
    alignment_speed: Mapping[int, float] = field(
        default_factory=lambda: MappingProxyType({16: 1.0, 8: 0.95, 4: 0.6, 2: 0.35}), hash=False
    )
    offset_copy_slowdown: float | None = 2.0
    shared_bytes_per_block: int | None = None
    shared_bytes_per_sm: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    intervals: Mapping[str, Interval] = field(default_factory=dict, hash=False, compare=False)
    measured: frozenset[str] = frozenset()
    pretended: frozenset[str] = frozenset()

    @property
    def tlb_l1_reach_bytes(self) -> float | None:
        """What an SM's own TLB covers."""
        return None if self.tlb_l1_entries is None else float(self.tlb_l1_entries * self.page_bytes)

    def source_of(self, name: str) -> str:
        """Return where a constant comes from, for example `prior: ...`; `unknown` for None."""
        if getattr(self, name) is None:
            return "unknown"
        return self.sources.get(name, _COMMON_SOURCES.get(name, "prior"))

    def interval_of(self, name: str) -> Interval | None:
        """Return the least and the most a constant may be; None: it is unknown."""
        value = getattr(self, name)
        if not isinstance(value, int | float):
            return None
        return self.intervals.get(name, (float(value), float(value)))

    def extremes(self) -> "tuple[MemoryFit, MemoryFit]":
        """Return the constants that make translation cheapest and dearest, within intervals."""
        cheap: dict[str, Any] = {}
        dear: dict[str, Any] = {}
        for name, more_is_cheap in _TRANSLATION_SIGNS.items():
            interval = self.interval_of(name)
            if interval is not None:
                least, most = interval
                cheap[name], dear[name] = (most, least) if more_is_cheap else (least, most)
        return replace(self, **cheap), replace(self, **dear)


_TRANSLATION_SIGNS = {
    "tlb_l2_reach_bytes": True,
    "tlb_l3_reach_bytes": True,
    "tlb_l1_miss_cycles": False,
    "tlb_l2_miss_cycles": False,
    "walk_cycles": False,
    "walkers": True,
}
"""Constants of translation, and whether more of them makes it cheaper."""

_ABOUT = ("gpu", "sources", "intervals", "measured", "pretended")
CONSTANTS = tuple(f.name for f in fields(MemoryFit) if f.name not in _ABOUT)
"""What a profile may say in its parameters `memory`."""

_COMMON_SOURCES = {
    "page_bytes": "CUDA's allocators map 2 MiB pages (published and by vAttention's account)",
    "tlb_entry_pages": "A100 study: 16 sub-entries an entry",
    "tlb_l1_entries": "reverse-engineered on RTX 3080: 16 entries; Volta's reach of 32 MB agrees",
    "tlb_l2_reach_bytes": "prior: Volta and Turing, about 8 GB; chases are flat to 2.25 GB",
    "tlb_l1_miss_cycles": "inferred: chases rise by 2 (A100) and 9 cycles (GH200) to 2.25 GB",
    "tlb_l2_miss_cycles": "prior",
    "walk_cycles": "prior; Turing's miss of the L2 TLB is published as 472 cycles",
    "walkers": "prior, general knowledge: studies simulate 8 to 64 page walkers; geometric middle",
    "alignment_speed": "prior, inferred: 16-byte vector loads and TMA, narrower kernels, copies",
    "offset_copy_slowdown": "inferred: at most twice the lines a request; DRAM-bound a few %",
}
