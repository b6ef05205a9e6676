"""Least recently used first: vLLM's own order."""

from collections.abc import Iterator


class Lru:
    """A doubly linked list threaded through two integer arrays.

    Blocks without a hash go to the front as one group, so that the tail block freed last step is
    reused next; hashed ones go to the back as one group, so that the least recently freed is
    evicted first (vLLM 0.33.0, `v1/core/block_pool.py`, `free_blocks`). The null block's slot is
    head and tail, which spares every operation its special cases.
    """

    __slots__ = ("_next", "_previous")

    def __init__(self, num_blocks: int) -> None:
        self._next = [*range(1, num_blocks), 0]
        self._previous = [num_blocks - 1, *range(num_blocks - 1)]

    def pop(self, count: int) -> list[int]:
        """See `EvictionOrder.pop`."""
        following = self._next
        block = following[0]
        taken = []
        for _ in range(count):
            taken.append(block)
            block = following[block]
        following[0] = block
        self._previous[block] = 0
        return taken

    def remove(self, block: int) -> None:
        """See `EvictionOrder.remove`; O(1)."""
        before, after = self._previous[block], self._next[block]
        self._next[before] = after
        self._previous[after] = before

    def release(self, unhashed: list[int], hashed: list[int]) -> None:
        """See `EvictionOrder.release`."""
        if unhashed:
            self._splice(0, unhashed, self._next[0])
        if hashed:
            self._splice(self._previous[0], hashed, 0)

    def __iter__(self) -> Iterator[int]:
        block = self._next[0]
        while block:
            yield block
            block = self._next[block]

    def _splice(self, before: int, blocks: list[int], after: int) -> None:
        following, previous = self._next, self._previous
        for block in blocks:
            following[before] = block
            previous[block] = before
            before = block
        following[before] = after
        previous[after] = before
