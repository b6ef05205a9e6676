"""Address translation of one kernel: misses by level, and the time they add.

Counted a kernel, never a pool: what matters is over which pages one kernel spreads its reads.
Entries of pages that it comes back to within the reach of a level are taken as there. The first
walk for a page of a slab that is streamed is not charged: it serves 2 MiB.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

from hwmodels.memory.fits import MemoryFit
from hwmodels.memory.layout import KvLayout
from hwmodels.memory.touched import Segments, expected_touched, touched


@dataclass(frozen=True, slots=True)
class PageVisits:
    """How one kernel goes over pages.

    Attributes:
        visits: times it turns to another page.
        bytes_per_visit: what it reads there each time, at the mean.
        pages: pages it touches.
        footprint_bytes: what TLB entries must cover to hold all of them: with entries of many
            pages, more than `pages` alone.
    """

    visits: float
    bytes_per_visit: float
    pages: float
    footprint_bytes: float

    def pages_per_entry(self, fit: MemoryFit) -> float:
        """Return how many of the pages of an outer TLB's entry are in use."""
        entries = self.footprint_bytes / (fit.page_bytes * fit.tlb_entry_pages)
        return self.pages / entries if entries else 1.0


@dataclass(frozen=True, slots=True)
class Translation:
    """What translation asks of one kernel.

    Attributes:
        visits: see `PageVisits`.
        l1_misses, l2_misses, walks: look-ups that miss each level, each also missing the former.
        latency_s: their latencies, overlapped as the reads are; 0 where that is unknown.
        walker_s: what the walkers take for all walks.
        cap_bytes_per_s: the most that the walkers let through; None: nothing walks.
    """

    visits: PageVisits
    l1_misses: float
    l2_misses: float
    walks: float
    latency_s: float
    walker_s: float
    cap_bytes_per_s: float | None

    @property
    def seconds(self) -> float:
        """The least time that translation takes."""
        return max(self.latency_s, self.walker_s)

    def added_s(self, slack_s: float) -> float:
        """Return what a kernel of `slack_s` seconds takes longer.

        Translation runs beside the reads: only what outlasts the kernel shows.
        """
        return max(0.0, self.seconds - slack_s)


def kernel_visits(layout: KvLayout, blocks: float, fit: MemoryFit) -> PageVisits:
    """Return how attention of one layer over `blocks` blocks goes over pages.

    Blocks side by side are read page after page; scattered ones one place after another. All
    heads of a block are read at the same time and count once.
    """
    blocks = min(blocks, float(layout.num_blocks))
    if blocks <= 0:
        return PageVisits(0.0, 0.0, 0.0, 0.0)
    read = blocks * layout.layer_block_bytes
    entry = fit.page_bytes * fit.tlb_entry_pages
    pages, entries = (_units(layout, blocks, unit) for unit in (fit.page_bytes, entry))
    compact = layout.order == "compact"
    visits = pages if compact else max(pages, blocks * layout.places_per_block)
    return PageVisits(visits, read / visits, pages, entries * entry)


def _units(layout: KvLayout, blocks: float, unit: int) -> float:
    """Return how many units of `unit` bytes a kernel touches.

    Of the layers the one in the middle stands for all; where its pieces lie against page
    borders hardly matters. Exact for compact blocks; for scattered ones the mean, in which a page
    that holds the last keys and the first values may count twice.
    """
    pieces = layout.pieces(layout.num_layers // 2)
    if layout.order == "scattered":
        return sum(expected_touched(piece, blocks, unit) for piece in pieces)
    count = math.ceil(blocks)
    used = [Segments(count, piece.stride, piece.segment, piece.start) for piece in pieces]
    found = sum(touched(piece, unit) for piece in used)
    for before, after in pairwise(used):
        found -= (before.start + before.span_bytes - 1) // unit == after.start // unit
    return float(found)


def miss_share(
    footprint_bytes: float, reach_bytes: float | None, pages_per_entry: float = 1.0
) -> float:
    """Return the share of look-ups that miss, for visits in random order under LRU.

    An entry is there with the chance h = reach / footprint. It stands for several pages, each
    valid only once it was looked up since the entry came: looking back over the entry's
    look-ups, the last one found it there (h) and was of this page, or of another one, and so on:
    a hit has the chance (h / s) / (1 - h (1 - 1/s)) with s pages an entry. So beyond the reach
    such a TLB falls off a cliff. Unknown reach counts as never left; `missing` names it.

    Args:
        footprint_bytes: what the entries of all visits would cover.
        reach_bytes: what the level covers.
        pages_per_entry: pages in use of those an entry stands for.
    """
    if reach_bytes is None or footprint_bytes <= reach_bytes:
        return 0.0
    there, pages = reach_bytes / footprint_bytes, max(1.0, pages_per_entry)
    return 1.0 - there / pages / (1.0 - there * (1.0 - 1.0 / pages))


def translation(layout: KvLayout, blocks: float, fit: MemoryFit, clock_hz: float) -> Translation:
    """Return what translation asks of attention of one layer over `blocks` blocks."""
    found = kernel_visits(layout, blocks, fit)
    l1 = found.visits * miss_share(found.pages * fit.page_bytes, fit.tlb_l1_reach_bytes)
    outer, per_entry = found.footprint_bytes, found.pages_per_entry(fit)
    l2 = min(l1, found.visits * miss_share(outer, fit.tlb_l2_reach_bytes, per_entry))
    walks = min(l2, found.visits * miss_share(outer, fit.tlb_l3_reach_bytes, per_entry))
    cycles = (
        l1 * (fit.tlb_l1_miss_cycles or 0.0)
        + l2 * (fit.tlb_l2_miss_cycles or 0.0)
        + walks * (fit.walk_cycles or 0.0)
    )
    together = in_flight(found, fit, clock_hz)
    latency_s = 0.0 if together is None else cycles / clock_hz / together
    rate = walk_rate(fit, clock_hz)
    if not walks or rate is None:
        return Translation(found, l1, l2, walks, latency_s, 0.0, None)
    cap = rate * found.bytes_per_visit * found.visits / walks
    return Translation(found, l1, l2, walks, latency_s, walks / rate, cap)


def in_flight(found: PageVisits, fit: MemoryFit, clock_hz: float) -> float | None:
    """Return how many visits a kernel has open together when it streams (Little's law).

    None: unknown; then latencies are not charged, only what the walkers take.
    """
    if fit.stream_bytes_per_s is None or fit.dram_cycles is None or not found.visits:
        return None
    bytes_ahead = fit.stream_bytes_per_s * fit.dram_cycles / clock_hz
    return max(1.0, bytes_ahead / found.bytes_per_visit)


def walk_rate(fit: MemoryFit, clock_hz: float) -> float | None:
    """Return the walks a second that all walkers do; None: unknown."""
    if fit.walkers is None or not fit.walk_cycles:
        return None
    return fit.walkers * clock_hz / fit.walk_cycles


def random_access_bytes_per_s(
    window_bytes: float, access_bytes: int, fit: MemoryFit, clock_hz: float
) -> float | None:
    """Return the rate of random reads in a window of memory; None: the full one is unknown.

    Full speed while the last level reaches over the window, then what its walkers let through.
    """
    if fit.stream_bytes_per_s is None:
        return None
    missed = miss_share(window_bytes, fit.tlb_l3_reach_bytes, fit.tlb_entry_pages)
    rate = walk_rate(fit, clock_hz)
    if not missed or rate is None:
        return fit.stream_bytes_per_s
    return min(fit.stream_bytes_per_s, rate * access_bytes / missed)


def missing(fit: MemoryFit) -> tuple[str, ...]:
    """Return the constants of translation that nobody knows of a GPU."""
    names = (
        "tlb_l2_reach_bytes",
        "tlb_l3_reach_bytes",
        "walk_cycles",
        "walkers",
        "dram_cycles",
        "stream_bytes_per_s",
    )
    return tuple(name for name in names if getattr(fit, name) is None)


def page_crossing_share(access_bytes: int, page_bytes: int) -> float:
    """Return how many of the line-sized places in a page lead over its border when shifted.

    One access of a shifted run of `access_bytes` each crosses a border every page.
    """
    return access_bytes / page_bytes
