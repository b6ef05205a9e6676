"""ARC: recency against frequency, with a balance that learns from what it threw away."""

from collections.abc import Sequence

from twin.paging.eviction.ghosts import Ghosts, forget_beyond, remember
from twin.paging.eviction.leaves import Leaves

_ONCE, _OFTEN = 0, 1


class Arc:
    """Implements `LeafPolicy` (Megiddo and Modha, "ARC", FAST 2003).

    Blocks used once and blocks used more often stand in two lists, each by last use. The first of
    the list that is longer than its share goes, and its key becomes a ghost of that list. Content
    computed again although its key is a ghost counts as used more often, and moves the share
    towards the list that it was missed from, once the request that computed it lets go of it.

    Held blocks do not count as part of a list, and several blocks are asked for at once: the
    paper's rule for a tie, which looks at the page about to be read, is left out.
    """

    lanes = 2

    def __init__(self, num_blocks: int) -> None:
        self._capacity = num_blocks - 1
        self._share = 0.0
        self._once_ghosts: Ghosts = Ghosts()
        self._often_ghosts: Ghosts = Ghosts()
        self._list = [_ONCE] * num_blocks
        self._learns = [0.0] * num_blocks
        self._turn = 0

    def cached(self, leaves: Leaves, blocks: Sequence[int], full: range) -> None:
        """See `LeafPolicy.cached`."""
        once, often = self._once_ghosts, self._often_ghosts
        for block in blocks[full.start : full.stop]:
            key, learns = leaves.key_of[block], 0.0
            if key in once:
                learns = max(1.0, len(often) / len(once))
                del once[key]
            elif key in often:
                learns = -max(1.0, len(once) / len(often))
                del often[key]
            self._learns[block] = learns
            self._list[block] = _OFTEN if learns else _ONCE

    def hit(self, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.hit`."""
        for block in blocks:
            self._list[block] = _OFTEN

    def release(self, leaves: Leaves, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.release`."""
        learns, list_of = self._learns, self._list
        for block in blocks:
            if learns[block]:
                self._share = min(float(self._capacity), max(0.0, self._share + learns[block]))
                learns[block] = 0.0
        self._turn += 1
        leaves.add(blocks, [self._turn] * len(blocks), [list_of[block] for block in blocks])

    def evict(self, leaves: Leaves, count: int) -> list[int]:
        """See `LeafPolicy.evict`."""
        return [self._evict_one(leaves) for _ in range(count)]

    def _evict_one(self, leaves: Leaves) -> int:
        once, often = leaves.sizes
        lane = _ONCE if once > self._share or not often else _OFTEN
        block = leaves.pop(lane)
        if not block:  # others hang on all of them
            lane = _OFTEN - lane
            block = leaves.pop(lane)
        once, often = leaves.sizes
        remember(self._once_ghosts if lane == _ONCE else self._often_ghosts, leaves.key_of[block])
        forget_beyond(self._once_ghosts, self._capacity - once)
        known = once + often + len(self._once_ghosts)
        forget_beyond(self._often_ghosts, 2 * self._capacity - known)
        return block
