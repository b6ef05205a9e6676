"""First in, first out: what was computed first goes first, however often it was used since."""

from collections.abc import Sequence
from itertools import repeat

from twin.paging.eviction.leaves import Leaves


class Fifo:
    """Implements `LeafPolicy`. A prefix stays while something computed after it hangs on it."""

    lanes = 1

    def __init__(self, num_blocks: int) -> None:
        self._turn = 0
        self._turn_of = [0] * num_blocks

    def cached(self, leaves: Leaves, blocks: Sequence[int], full: range) -> None:  # noqa: ARG002
        """See `LeafPolicy.cached`."""
        self._turn += 1
        for block in blocks[full.start : full.stop]:
            self._turn_of[block] = self._turn

    def hit(self, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.hit`."""

    def release(self, leaves: Leaves, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.release`."""
        turn_of = self._turn_of
        leaves.add(blocks, [turn_of[block] for block in blocks], repeat(0))

    def evict(self, leaves: Leaves, count: int) -> list[int]:
        """See `LeafPolicy.evict`."""
        return leaves.pop_many(count)
