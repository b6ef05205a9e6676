"""What a scheduler's KV memory holds at one instant: owned, cached and free blocks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twin.scheduling import SglangScheduler, TrtllmScheduler, VllmV1Scheduler
from twin.scheduling.base import Scheduler

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PoolState:
    """The KV blocks of one engine core.

    Attributes:
        owned_blocks: held by at least one request.
        cached_blocks: held by none, with content that a later request can hit.
        free_blocks: held by none, with nothing to be hit.
        holders: requests that hold each block, in order of block numbers, shape (blocks,);
            None: the engine only counts.
        cached: whether a block is one of the cached ones; None as above.
    """

    owned_blocks: int
    cached_blocks: int
    free_blocks: int
    holders: Ints | None = None
    cached: Bools | None = None


def pool_state(scheduler: Scheduler) -> PoolState:
    """Return what a scheduler's KV memory holds now; that changes nothing.

    Raises:
        TypeError: nobody has said how to read this scheduler.
    """
    if isinstance(scheduler, VllmV1Scheduler):
        return _vllm(scheduler)
    if isinstance(scheduler, TrtllmScheduler):
        return _trtllm(scheduler)
    if isinstance(scheduler, SglangScheduler):
        return _sglang(scheduler)
    raise TypeError(f"the pool of {type(scheduler).__name__} cannot be read")


def _vllm(scheduler: VllmV1Scheduler) -> PoolState:
    """Block 0 is the null block, which nobody can hold."""
    pool = scheduler.core.pool
    holders = np.array(pool.references[1:], dtype=np.int64)
    if pool.cache is None:
        return _told(holders, np.zeros(holders.size, dtype=np.bool_))
    keys = pool.cache.key_of
    known = np.fromiter((key is not None for key in keys), np.bool_, len(keys))
    return _told(holders, known[1:])


def _trtllm(scheduler: TrtllmScheduler) -> PoolState:
    kv = scheduler.kv
    holders, tree = np.array(kv.references, dtype=np.int64), kv.tree
    if tree is None:
        return _told(holders, np.zeros(holders.size, dtype=np.bool_))
    return _told(
        holders, np.fromiter((block in tree for block in range(kv.usable)), np.bool_, kv.usable)
    )


def _told(holders: Ints, known: Bools) -> PoolState:
    cached = known & (holders == 0)
    owned, kept = int(np.count_nonzero(holders)), int(np.count_nonzero(cached))
    return PoolState(owned, kept, holders.size - owned - kept, holders, cached)


def _sglang(scheduler: SglangScheduler) -> PoolState:
    """Its pages are only counted: which one a token lies in decides nothing."""
    usable, unheld = scheduler.usable_blocks, scheduler.free_blocks
    cached = min(unheld, scheduler.core.cache.tree.evictable // scheduler.limits.page_size)
    return PoolState(usable - unheld, cached, unheld - cached)
