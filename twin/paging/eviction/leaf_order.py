"""The order of free blocks under a policy that chooses among the tips of cached chains."""

import copy
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Protocol

from twin.paging.eviction.leaves import Leaves
from twin.paging.eviction.lru import Lru


class LeafPolicy(Protocol):
    """Who goes first among cached blocks; `LeafOrder` keeps the books.

    `lanes`: how many groups of blocks it ranks apart.
    """

    lanes: int

    def cached(self, leaves: Leaves, blocks: Sequence[int], full: range) -> None:
        """See `ContentOrder.cached`; the keys stand in `leaves.key_of`."""
        ...

    def hit(self, blocks: Sequence[int]) -> None:
        """See `ContentOrder.hit`."""
        ...

    def release(self, leaves: Leaves, blocks: Sequence[int]) -> None:
        """Put blocks among the cached ones, the tail of the sequence first, each with its rank."""
        ...

    def evict(self, leaves: Leaves, count: int) -> list[int]:
        """Take so many of the cached blocks out, of which there are as many; return them."""
        ...


class LeafOrder:
    """Implements `ContentOrder`: blocks without content first, then as the policy says.

    Blocks that no look-up can find go in the order of `Lru`: the one freed last is used next.

    Args:
        num_blocks: of the pool, the null block included.
        policy: who goes first among the others.
    """

    __slots__ = ("_leaves", "_num_unhashed", "_policy", "_unhashed")

    def __init__(self, num_blocks: int, policy: LeafPolicy) -> None:
        self._unhashed = Lru(num_blocks)
        self._num_unhashed = num_blocks - 1
        self._leaves = Leaves(num_blocks, policy.lanes)
        self._policy = policy

    def pop(self, count: int) -> list[int]:
        """See `EvictionOrder.pop`."""
        unhashed = min(count, self._num_unhashed)
        taken = self._unhashed.pop(unhashed) if unhashed else []
        self._num_unhashed -= unhashed
        if count > unhashed:
            taken += self._policy.evict(self._leaves, count - unhashed)
        return taken

    def remove(self, block: int) -> None:
        """See `EvictionOrder.remove`."""
        if block in self._leaves:
            self._leaves.discard(block)
        else:
            self._unhashed.remove(block)
            self._num_unhashed -= 1

    def release(self, unhashed: list[int], hashed: list[int]) -> None:
        """See `EvictionOrder.release`."""
        self._unhashed.release(unhashed, [])
        self._num_unhashed += len(unhashed)
        if hashed:
            self._policy.release(self._leaves, hashed)

    def cached(self, blocks: Sequence[int], keys: Sequence[int], full: range) -> None:
        """See `ContentOrder.cached`."""
        self._leaves.identify(blocks, keys, full)
        self._policy.cached(self._leaves, blocks, full)

    def hit(self, blocks: Sequence[int]) -> None:
        """See `ContentOrder.hit`."""
        self._policy.hit(blocks)

    def __iter__(self) -> Iterator[int]:
        """See `EvictionOrder`; takes time and memory in proportion to the whole pool."""
        yield from self._unhashed
        leaves, policy = copy.copy(self._leaves), _copy_of(self._policy)
        while any(leaves.sizes):
            yield from policy.evict(leaves, 1)


def _copy_of(policy: LeafPolicy) -> LeafPolicy:
    """Return a policy whose choices leave the given one as it is."""
    twin = copy.copy(policy)
    for name, value in vars(policy).items():
        if isinstance(value, (list, OrderedDict)):
            setattr(twin, name, value.copy())
    return twin
