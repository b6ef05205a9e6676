"""Least frequently used: the fewest hits since a block was computed; the oldest of those."""

from collections.abc import Sequence
from itertools import repeat

from twin.paging.eviction.leaves import Leaves

_TURN_BITS = 48  # more turns than any run has: hits decide, then age


class Lfu:
    """Implements `LeafPolicy`. Hits are forgotten with the block; they do not age.

    Whoever finds a block finds all before it, so a prefix has as many hits as what follows it.
    """

    lanes = 1

    def __init__(self, num_blocks: int) -> None:
        self._hits = [0] * num_blocks
        self._turn = 0

    def cached(self, leaves: Leaves, blocks: Sequence[int], full: range) -> None:  # noqa: ARG002
        """See `LeafPolicy.cached`."""
        for block in blocks[full.start : full.stop]:
            self._hits[block] = 0

    def hit(self, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.hit`."""
        hits = self._hits
        for block in blocks:
            hits[block] += 1

    def release(self, leaves: Leaves, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.release`."""
        self._turn = turn = self._turn + 1
        hits = self._hits
        leaves.add(blocks, [hits[block] << _TURN_BITS | turn for block in blocks], repeat(0))

    def evict(self, leaves: Leaves, count: int) -> list[int]:
        """See `LeafPolicy.evict`."""
        return leaves.pop_many(count)
