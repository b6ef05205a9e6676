"""Belady's optimum: what is needed again last goes first. It knows the future, no engine does."""

from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from twin.caching.accesses import BlockAccesses
from twin.paging.eviction.leaves import Leaves


def next_uses(accesses: BlockAccesses) -> list[int]:
    """Return for each look-up the request that looks its block up next; their number: none does."""
    keys, offsets = accesses.keys, accesses.offsets
    requests = np.repeat(np.arange(accesses.num_requests), np.diff(offsets))
    order: NDArray[np.int64] = np.argsort(keys, kind="stable")
    same = keys[order][1:] == keys[order][:-1]
    following = np.full(keys.size, accesses.num_requests)
    following[order[:-1][same]] = requests[order[1:][same]]
    answer: list[int] = following.tolist()
    return answer


class Belady:
    """Implements `LeafPolicy` for a replay: the free block whose next look-up lies furthest ahead.

    Why nothing does better, in the game that `twin.caching.replay` plays. A request must hold all
    its blocks at once, so of the free ones some must go, and which ones is all that can be
    chosen. Were hits not chained, a request would miss those of its blocks that are not there, at
    one each, and evicting what is needed last would be optimal by the usual exchange argument:
    any other choice can keep the block that it would have thrown out in place of one that is
    needed later without missing more (Belady 1966; Mattson et al. 1970). Chained hits are never
    more than those. And here they are as many: whoever looks a block up looks up all before it,
    so a block is needed no later than what follows it, and of two that are needed at the same
    time the later of the chain goes first. What is cached is whole chains from their start.

    Args:
        num_blocks: of the pool.
        next_use: see `next_uses`.
        start: where the look-ups of the request at hand begin.
    """

    lanes = 1

    def __init__(self, num_blocks: int, next_use: list[int], start: Callable[[], int]) -> None:
        self._position = [0] * num_blocks
        self._next_use = next_use
        self._start = start

    def cached(self, leaves: Leaves, blocks: Sequence[int], full: range) -> None:  # noqa: ARG002
        """See `LeafPolicy.cached`."""
        for place in full:
            self._position[blocks[place]] = place

    def hit(self, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.hit`."""

    def release(self, leaves: Leaves, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.release`."""
        next_use, start, position = self._next_use, self._start(), self._position
        leaves.add(blocks, [-next_use[start + position[block]] for block in blocks], repeat(0))

    def evict(self, leaves: Leaves, count: int) -> list[int]:
        """See `LeafPolicy.evict`."""
        return leaves.pop_many(count)
