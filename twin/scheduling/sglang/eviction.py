"""Which cached leaf goes first, and a queue of the leaves in that order."""

import heapq
from collections.abc import Callable, Iterator

from twin.naming import lookup
from twin.scheduling.sglang.tree_node import TreeNode

Rank = tuple[int, int]
"""The smallest rank is evicted first."""

_PROTECTED_HITS = 2
"""`slru`: from this many hits on a node is in the protected segment."""

_MANY_ENTRIES = 1024
"""From this many entries on the void ones are looked for."""


def _lru(node: TreeNode) -> Rank:
    return 0, node.touched


def _lfu(node: TreeNode) -> Rank:
    return node.hits, node.touched


def _slru(node: TreeNode) -> Rank:
    return int(node.hits >= _PROTECTED_HITS), node.touched


def _priority(node: TreeNode) -> Rank:
    return node.priority, node.touched


EVICTION_KEYS: dict[str, Callable[[TreeNode], Rank]] = {
    "lru": _lru,
    "lfu": _lfu,
    "slru": _slru,
    "priority": _priority,
    "tlru": _lru,
}
"""`SglangLimits.radix_eviction_policy` to the rank of a leaf."""


def eviction_key(policy: str, tlru: tuple[int, int]) -> Callable[[TreeNode], Rank]:
    """Return the rank of a leaf under `policy`.

    Args:
        policy: a name in `EVICTION_KEYS`.
        tlru: threshold and estimate of the next prompt, tokens: what a conversation need not keep
            to answer its next prompt in time goes first (Zhang et al., arXiv:2510.15152).
    """
    if policy != "tlru":
        return lookup(EVICTION_KEYS, policy, "eviction policy")
    threshold, estimate = tlru

    def rank(node: TreeNode) -> Rank:
        budget = max(node.history + estimate - threshold, 0)
        # `history` outlives the tail that was cut off, so that the rest is not over budget again.
        parent_depth = node.parent.depth if node.parent is not None else 0
        return -int(parent_depth >= budget), node.touched

    return rank


class EvictionQueue:
    """Leaves by rank; an entry is void once its leaf has gone, is held, or has another rank."""

    __slots__ = ("_heap", "_limit", "_rank", "_serial")

    def __init__(self, rank: Callable[[TreeNode], Rank]) -> None:
        self._rank = rank
        self._heap: list[tuple[Rank, int, TreeNode]] = []
        self._limit = _MANY_ENTRIES
        self._serial = 0

    def push(self, leaf: TreeNode) -> None:
        """Enter an evictable leaf with its present rank."""
        self._serial += 1
        heapq.heappush(self._heap, (self._rank(leaf), self._serial, leaf))
        if len(self._heap) > self._limit:
            self._drop_void_entries()

    def pop(self) -> TreeNode | None:
        """Take out the evictable leaf of the smallest rank; None: there is none."""
        while self._heap:
            rank, _, leaf = heapq.heappop(self._heap)
            if self._is_present(rank, leaf):
                return leaf
        return None

    def foreseen(self) -> Iterator[TreeNode]:
        """Iterate over the nodes in the order in which they would be evicted; none is taken out.

        A node follows once all its children would be gone. Nothing may change meanwhile.
        """
        heap, serial, gone = self._heap.copy(), self._serial, set[TreeNode]()
        while heap:
            rank, _, leaf = heapq.heappop(heap)
            free = leaf.parent is not None and not leaf.locks and leaf not in gone
            if not free or not gone.issuperset(leaf.children.values()) or self._rank(leaf) != rank:
                continue
            gone.add(leaf)
            yield leaf
            parent = leaf.parent
            if parent is not None:
                serial += 1
                heapq.heappush(heap, (self._rank(parent), serial, parent))

    def _drop_void_entries(self) -> None:
        present = {leaf: rank for rank, _, leaf in self._heap if self._is_present(rank, leaf)}
        self._heap = [(rank, serial, leaf) for serial, (leaf, rank) in enumerate(present.items())]
        heapq.heapify(self._heap)
        self._limit = max(_MANY_ENTRIES, 2 * len(self._heap))

    def _is_present(self, rank: Rank, leaf: TreeNode) -> bool:
        return leaf.is_evictable_leaf and self._rank(leaf) == rank
