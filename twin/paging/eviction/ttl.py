"""Least recently used, and not at all a while after the last use."""

import math
from collections import deque
from collections.abc import Callable, Iterator

from twin.paging.eviction.lru import Lru


class Ttl:
    """Implements `ExpiringOrder`: `Lru`, with blocks that can be found for `ttl_s` after use.

    A block's time begins when the last request that used it lets go of it, so a prefix outlives
    what follows it. Time takes nothing from what is held, and does not change who goes first:
    blocks whose time is over are the least recently used ones.

    Args:
        num_blocks: of the pool.
        ttl_s: seconds after its last use for which a block can be found.
        clock: simulated seconds; never goes back.
    """

    __slots__ = ("_clock", "_freed", "_freed_s", "_order", "_ttl_s")

    def __init__(self, num_blocks: int, ttl_s: float, clock: Callable[[], float]) -> None:
        self._order = Lru(num_blocks)
        self._ttl_s = ttl_s
        self._clock = clock
        self._freed: deque[tuple[float, int]] = deque()
        # When each was freed; infinite: it is held, or holds nothing.
        self._freed_s = [math.inf] * num_blocks

    def pop(self, count: int) -> list[int]:
        """See `EvictionOrder.pop`."""
        taken = self._order.pop(count)
        for block in taken:
            self._freed_s[block] = math.inf
        return taken

    def remove(self, block: int) -> None:
        """See `EvictionOrder.remove`."""
        self._order.remove(block)
        self._freed_s[block] = math.inf

    def release(self, unhashed: list[int], hashed: list[int]) -> None:
        """See `EvictionOrder.release`."""
        self._order.release(unhashed, hashed)
        now = self._clock()
        for block in hashed:
            self._freed_s[block] = now
            self._freed.append((now, block))

    def expired(self) -> list[int]:
        """See `ExpiringOrder.expired`."""
        freed, freed_s, gone = self._freed, self._freed_s, []
        latest_s = self._clock() - self._ttl_s
        while freed and freed[0][0] <= latest_s:
            then_s, block = freed.popleft()
            if freed_s[block] == then_s:
                freed_s[block] = math.inf
                gone.append(block)
        return gone

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)
