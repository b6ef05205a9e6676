"""The seam between a block pool and an eviction policy."""

from collections.abc import Iterator
from typing import Protocol


class EvictionOrder(Protocol):
    """The free blocks, in the order in which they will be handed out.

    Built with the number of blocks in the pool; block 0 is the null block and never in it, and
    blocks 1, 2, … start free in that order. The pool counts; an order only orders.
    """

    def pop(self, count: int) -> list[int]:
        """Take the next `count` blocks out; the caller knows that there are as many."""
        ...

    def remove(self, block: int) -> None:
        """Take out a free block that a prefix-cache hit wants, wherever it stands."""
        ...

    def release(self, unhashed: list[int], hashed: list[int]) -> None:
        """Put blocks back that nobody holds any more.

        Args:
            unhashed: blocks no look-up can find, the tail of the sequence first.
            hashed: blocks that may be hit again, the tail of the sequence first.
        """
        ...

    def __iter__(self) -> Iterator[int]:
        """Iterate over the free blocks, next to go first."""
        ...
