"""The seam between a block pool and an eviction policy."""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable


class EvictionOrder(Protocol):
    """The free blocks, in the order in which they will be handed out.

    Block 0 is the null block and never in it, and blocks 1, 2, … start free in that order. The
    pool counts; an order only orders. How blocks were taken before, one by one or many at once,
    makes no difference.
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
        """Iterate over the free blocks, next to go first.

        The order in which `pop` hands them out as long as nothing is removed or released.
        """
        ...


@runtime_checkable
class ContentOrder(EvictionOrder, Protocol):
    """An order that also hears what blocks hold and how often that is used.

    Neither changes the order of blocks that are free at that moment.
    """

    def cached(self, blocks: Sequence[int], keys: Sequence[int], full: range) -> None:
        """Hear that the blocks at the positions `full` of a request can be found from now on.

        Args:
            blocks: all of the request's blocks, in token order; it holds them.
            keys: the chained key of each of its full blocks: what is equal in one is equal in all
                before it.
            full: positions of the new ones.
        """
        ...

    def hit(self, blocks: Sequence[int]) -> None:
        """Hear of cached blocks that a request found, held ones included, before it holds them."""
        ...


@runtime_checkable
class ExpiringOrder(EvictionOrder, Protocol):
    """An order whose blocks can be found for a while only."""

    def expired(self) -> list[int]:
        """Return the free blocks whose time is over by now and that were not returned before.

        They keep their places.
        """
        ...
