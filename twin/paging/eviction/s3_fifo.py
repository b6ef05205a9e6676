"""S3-FIFO: a small queue for what is new, a main one for what was used again, and ghosts."""

from collections.abc import Sequence

from twin.paging.eviction.ghosts import Ghosts, forget_beyond, remember
from twin.paging.eviction.leaves import Leaves

_SMALL, _MAIN = 0, 1
_SMALL_SHARE = 0.1
_MOST_HITS = 3


class S3Fifo:
    """Implements `LeafPolicy` (Yang et al., "FIFO queues are all you need", SOSP 2023).

    New content enters the small queue, a tenth of the pool, unless its key is a ghost: it then
    enters the main one. While the small queue is full its first goes: into the main one after two
    hits or more, else out, with its key a ghost. Else the main queue's first goes, which with hits
    left enters it again with one hit less. Hits count to 3. There are as many ghosts as places in
    the main queue.

    Held blocks keep their turn but do not count as part of a queue. A prefix whose turn has come
    while something free hangs on it is judged as soon as that has gone.
    """

    lanes = 2

    def __init__(self, num_blocks: int) -> None:
        self._small_blocks = max(1, int(_SMALL_SHARE * (num_blocks - 1)))
        self._most_ghosts = num_blocks - 1 - self._small_blocks
        self._ghosts: Ghosts = Ghosts()
        self._hits = [0] * num_blocks
        self._queue = [_SMALL] * num_blocks
        self._turn_of = [0] * num_blocks
        self._turn = 0

    def cached(self, leaves: Leaves, blocks: Sequence[int], full: range) -> None:
        """See `LeafPolicy.cached`."""
        self._turn += 1
        key_of, ghosts = leaves.key_of, self._ghosts
        for block in blocks[full.start : full.stop]:
            key = key_of[block]
            self._queue[block] = _MAIN if key in ghosts else _SMALL
            ghosts.pop(key, None)
            self._turn_of[block] = self._turn
            self._hits[block] = 0

    def hit(self, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.hit`."""
        hits = self._hits
        for block in blocks:
            if hits[block] < _MOST_HITS:
                hits[block] += 1

    def release(self, leaves: Leaves, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.release`."""
        turn_of, queue = self._turn_of, self._queue
        leaves.add(blocks, [turn_of[block] for block in blocks], [queue[block] for block in blocks])

    def evict(self, leaves: Leaves, count: int) -> list[int]:
        """See `LeafPolicy.evict`."""
        return [self._evict_one(leaves) for _ in range(count)]

    def _evict_one(self, leaves: Leaves) -> int:
        sizes, hits = leaves.sizes, self._hits
        while True:
            small = sizes[_SMALL] >= self._small_blocks or not sizes[_MAIN]
            block = leaves.pop(_SMALL if small else _MAIN)
            if not block:  # others hang on all of them
                small = not small
                block = leaves.pop(_SMALL if small else _MAIN)
            if small and hits[block] <= 1:
                remember(self._ghosts, leaves.key_of[block])
                forget_beyond(self._ghosts, self._most_ghosts)
                return block
            if not small and not hits[block]:
                return block
            hits[block] = 0 if small else hits[block] - 1
            self._turn += 1
            self._queue[block], self._turn_of[block] = _MAIN, self._turn
            leaves.add((block,), (self._turn,), (_MAIN,))
