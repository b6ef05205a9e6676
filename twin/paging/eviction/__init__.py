"""In which order free blocks are handed out again; one file a policy."""

from collections.abc import Callable

from twin.paging.eviction.arc import Arc
from twin.paging.eviction.cost_aware import CostAware
from twin.paging.eviction.fifo import Fifo
from twin.paging.eviction.leaf_order import LeafOrder
from twin.paging.eviction.lfu import Lfu
from twin.paging.eviction.lru import Lru
from twin.paging.eviction.order import EvictionOrder
from twin.paging.eviction.s3_fifo import S3Fifo
from twin.paging.eviction.setup import EvictionSetup
from twin.paging.eviction.ttl import Ttl


def _lru(setup: EvictionSetup) -> EvictionOrder:
    return Lru(setup.num_blocks)


def _fifo(setup: EvictionSetup) -> EvictionOrder:
    return LeafOrder(setup.num_blocks, Fifo(setup.num_blocks))


def _lfu(setup: EvictionSetup) -> EvictionOrder:
    return LeafOrder(setup.num_blocks, Lfu(setup.num_blocks))


def _s3_fifo(setup: EvictionSetup) -> EvictionOrder:
    return LeafOrder(setup.num_blocks, S3Fifo(setup.num_blocks))


def _arc(setup: EvictionSetup) -> EvictionOrder:
    return LeafOrder(setup.num_blocks, Arc(setup.num_blocks))


def _cost_aware(setup: EvictionSetup) -> EvictionOrder:
    return LeafOrder(setup.num_blocks, CostAware(setup.num_blocks, setup.parity_blocks))


def _ttl(setup: EvictionSetup) -> EvictionOrder:
    return Ttl(setup.num_blocks, setup.ttl_s, setup.clock)


EVICTION: dict[str, Callable[[EvictionSetup], EvictionOrder]] = {
    "lru": _lru,
    "fifo": _fifo,
    "lfu": _lfu,
    "s3_fifo": _s3_fifo,
    "arc": _arc,
    "cost_aware": _cost_aware,
    "ttl": _ttl,
}
"""`EnginePolicy.eviction` to what builds the order of a pool."""
