"""In which order free blocks are handed out again; one file a policy."""

from collections.abc import Callable

from twin.paging.eviction.lru import Lru
from twin.paging.eviction.order import EvictionOrder

EVICTION: dict[str, Callable[[int], EvictionOrder]] = {"lru": Lru}
"""`EnginePolicy.eviction` to the constructor, which takes the number of blocks in the pool."""
