"""The KV-cache blocks of one engine: who holds them, which are free, which can be hit."""

from collections.abc import Iterator, Sequence

from twin.errors import InputError
from twin.naming import lookup
from twin.paging.eviction import EVICTION
from twin.paging.eviction.order import ContentOrder, EvictionOrder, ExpiringOrder
from twin.paging.eviction.setup import EvictionSetup
from twin.paging.prefix_cache import PrefixCache


class BlockPool:
    """Paged KV memory with reference counts, as vLLM V1's `BlockPool` (0.33.0).

    Block 0 is the null block, so `num_gpu_blocks - 1` blocks can be held. A block that nobody
    holds is free even while its content can still be hit; allocation is what forgets it.

    Args:
        num_gpu_blocks: blocks in GPU memory, the null block included.
        caching: whether full blocks can be found again.
        eviction: the order in which free blocks go, or its name in `EVICTION`, then with
            nothing set but the size.

    Attributes:
        usable: blocks that requests can hold.
        num_free: blocks that no request holds, cached ones included.
        references: number of holders by block.
        cache: the prefix cache; None without prefix caching.

    Raises:
        InputError: fewer than two blocks, or an unknown eviction order.
    """

    __slots__ = (
        "_content_order", "_expiring_order", "_order", "cache", "num_free", "references", "usable",
    )  # fmt: skip

    def __init__(
        self, num_gpu_blocks: int, *, caching: bool, eviction: str | EvictionOrder = "lru"
    ) -> None:
        if num_gpu_blocks < 2:
            raise InputError(
                f"num_gpu_blocks {num_gpu_blocks} leaves no block to hold",
                remedy="give at least 2: one is the null block",
            )
        self.usable = num_gpu_blocks - 1
        self.num_free = self.usable
        self.references = [0] * num_gpu_blocks
        self.cache = PrefixCache(num_gpu_blocks) if caching else None
        if isinstance(eviction, str):
            build = lookup(EVICTION, eviction, "eviction order")
            eviction = build(EvictionSetup(num_gpu_blocks))
        self._order = order = eviction
        self._content_order = order if isinstance(order, ContentOrder) else None
        self._expiring_order = order if isinstance(order, ExpiringOrder) else None

    def allocate(self, count: int, blocks: list[int]) -> None:
        """Append `count` new blocks to `blocks`; what they held is forgotten.

        Raises:
            ValueError: more than `num_free` asked for; the caller has to check first.
        """
        if count > self.num_free:
            raise ValueError(f"{count} blocks asked for, {self.num_free} free")
        taken = self._order.pop(count)
        self.num_free -= count
        references = self.references
        for block in taken:
            references[block] = 1
        cache = self.cache
        if cache is not None:
            key_of = cache.key_of
            for block in taken:
                if key_of[block] is not None:
                    cache.forget(block)
        blocks += taken

    def free(self, blocks: Sequence[int]) -> None:
        """Let go of a request's blocks, given in token order.

        The tail goes first, so that a shared prefix outlives what follows it.
        """
        references = self.references
        key_of = None if self.cache is None else self.cache.key_of
        unhashed: list[int] = []
        hashed: list[int] = []
        for block in reversed(blocks):
            holders = references[block] - 1
            references[block] = holders
            if not holders:
                cached = key_of is not None and key_of[block] is not None
                (hashed if cached else unhashed).append(block)
        self.num_free += len(unhashed) + len(hashed)
        self._order.release(unhashed, hashed)

    def longest_hit(self, keys: Sequence[int], max_blocks: int) -> list[int]:
        """Return the cached blocks that hold the longest prefix of `keys`; empty: no caching."""
        if self.cache is None:
            return []
        if self._expiring_order is not None:
            self._forget_expired(self._expiring_order)
        return self.cache.longest_hit(keys, max_blocks)

    def count_unheld(self, blocks: Sequence[int]) -> int:
        """Return how many of `blocks` nobody holds: taking them uses free capacity."""
        references = self.references
        return sum(1 for block in blocks if not references[block])

    def hold(self, blocks: Sequence[int]) -> None:
        """Add a holder to cached blocks that were hit; free ones leave the free order."""
        references = self.references
        if self._content_order is not None:
            self._content_order.hit(blocks)
        for block in blocks:
            if not references[block]:
                self._order.remove(block)
                self.num_free -= 1
            references[block] += 1

    def cache_full(self, blocks: Sequence[int], keys: Sequence[int], full: range) -> None:
        """Make the blocks at the positions `full` of a request findable under their keys."""
        if self.cache is None:
            return
        start, stop = full.start, full.stop
        self.cache.insert_run(keys[start:stop], blocks[start:stop])
        if self._content_order is not None:
            self._content_order.cached(blocks, keys, full)

    def free_blocks(self) -> Iterator[int]:
        """Iterate over the free blocks, next to be handed out first."""
        return iter(self._order)

    def free_order(self) -> list[int]:
        """Return the free blocks, next to be handed out first."""
        return list(self._order)

    def _forget_expired(self, order: ExpiringOrder) -> None:
        if self.cache is not None:
            for block in order.expired():
                self.cache.forget(block)
