"""A trace's look-ups against one pool of blocks, one request after another."""

from collections.abc import Callable
from dataclasses import dataclass

from twin.caching.accesses import BlockAccesses
from twin.paging.block_pool import BlockPool
from twin.paging.eviction.order import EvictionOrder


@dataclass(slots=True)
class Present:
    """Where a replay stands.

    Attributes:
        now_s: when the request at hand arrived.
        start: where its look-ups begin.
    """

    now_s: float = 0.0
    start: int = 0


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay gave.

    Attributes:
        hits: look-ups that found their block.
        refused: requests with more blocks than the pool, whose look-ups all miss.
    """

    hits: int
    refused: int


def replay(
    accesses: BlockAccesses,
    capacity_blocks: int,
    order: Callable[[int, Present], EvictionOrder],
) -> Replayed:
    """Replay a trace through the engine's own block pool and eviction order.

    Requests come one after another in order of arrival: each finds the longest prefix that is
    cached, holds it, takes blocks for the rest, makes them findable and lets go of all. What an
    engine adds (several requests at once, blocks of answers, a last token that is computed
    anyway) is left out. A request that the pool cannot hold is refused and changes nothing.

    Args:
        accesses: the look-ups.
        capacity_blocks: blocks that requests can hold.
        order: what builds the order, from blocks of the pool and where the replay stands.
    """
    present = Present()
    pool = BlockPool(
        capacity_blocks + 1, caching=True, eviction=order(capacity_blocks + 1, present)
    )
    keys, hits, refused = accesses.keys.tolist(), 0, 0
    offsets = accesses.offsets.tolist()
    starts = zip(offsets, offsets[1:], accesses.arrival_s.tolist(), strict=False)
    for start, end, arrival_s in starts:
        asked = end - start
        if asked > capacity_blocks:
            refused += 1
            continue
        present.now_s, present.start = arrival_s, start
        wanted = keys[start:end]
        blocks = pool.longest_hit(wanted, asked)
        found = len(blocks)
        hits += found
        pool.hold(blocks)
        if found < asked:
            pool.allocate(asked - found, blocks)
            pool.cache_full(blocks, wanted, range(found, asked))
        pool.free(blocks)
    return Replayed(hits, refused)
