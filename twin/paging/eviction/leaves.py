"""Cached blocks that nobody holds, of which those at the tips of their chains may go."""

import copy
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

_FEW_ENTRIES = 1024
"""Up to so many entries a heap is not searched for void ones."""


class Leaves:
    """Free cached blocks by rank, in one or more lanes.

    A block that another free one follows in its chain is no candidate: without it nobody could
    find what follows, which would fill the memory for nothing. It becomes one when the last of
    them has gone. (SGLang's radix tree evicts leaves alone for the same reason.) Of free blocks
    the deepest of any chain is always a candidate, so there is one as long as any is free.

    A block's place in its chain is told by keys, since a key stands for all that comes before.

    Args:
        num_blocks: of the pool, the null block included.
        lanes: how many groups are ranked apart.

    Attributes:
        key_of: key by block, of its last content.
        sizes: free blocks by lane, candidates or not.
    """

    __slots__ = (
        "_children", "_entry", "_first", "_heaps", "_lane", "_limits", "_parent", "_rank",
        "_serial", "_twin", "key_of", "sizes",
    )  # fmt: skip

    def __init__(self, num_blocks: int, lanes: int = 1) -> None:
        self.key_of: list[int] = [0] * num_blocks
        self.sizes = [0] * lanes
        self._parent: list[int | None] = [None] * num_blocks
        # Free blocks of a key, linked; 0 ends the row. And how many free ones follow a key.
        self._first: dict[int | None, int] = {}
        self._twin = [0] * num_blocks
        self._children: dict[int | None, int] = {}
        # An entry of a heap is void unless its serial is the one noted for its block.
        self._heaps: list[list[tuple[Any, int, int]]] = [[] for _ in range(lanes)]
        self._limits = [_FEW_ENTRIES] * lanes
        self._rank: list[Any] = [0] * num_blocks
        self._lane = [-1] * num_blocks
        self._entry = [0] * num_blocks
        self._serial = 0

    def identify(self, blocks: Sequence[int], keys: Sequence[int], full: range) -> None:
        """Note what blocks hold; see `ContentOrder.cached`."""
        key_of, parent = self.key_of, self._parent
        before = keys[full.start - 1] if full.start else None
        for place in full:
            block = blocks[place]
            key_of[block] = key = keys[place]
            parent[block] = before
            before = key

    def __contains__(self, block: int) -> bool:
        return self._lane[block] >= 0

    def add(self, blocks: Sequence[int], ranks: Sequence[Any], lanes: Iterable[int]) -> None:
        """Take in free blocks; in a lane the smallest rank goes first, of equal ones the first.

        Written out for speed: it runs once a block and request.
        """
        key_of, parent_of, rank_of, lane_of = self.key_of, self._parent, self._rank, self._lane
        first, children, twin, sizes = self._first, self._children, self._twin, self.sizes
        for block, rank, lane in zip(blocks, ranks, lanes, strict=False):
            key, parent = key_of[block], parent_of[block]
            rank_of[block] = rank
            lane_of[block] = lane
            sizes[lane] += 1
            twin[block] = first.get(key, 0)
            first[key] = block
            if key not in children:
                self._push(block)
            if parent in children:
                children[parent] += 1
            else:
                children[parent] = 1
                above = first.get(parent, 0)
                while above:
                    self._entry[above] = 0
                    above = twin[above]

    def discard(self, block: int) -> None:
        """Take a block out, wherever it stands."""
        self.sizes[self._lane[block]] -= 1
        self._lane[block] = -1
        self._entry[block] = 0
        first, twin, key = self._first, self._twin, self.key_of[block]
        if twin[block] or first[key] != block:
            self._unlink(block)
        else:
            del first[key]
        parent, children = self._parent[block], self._children
        siblings = children[parent] - 1
        if siblings:
            children[parent] = siblings
            return
        del children[parent]
        above = first.get(parent, 0)
        while above:
            self._push(above)
            above = twin[above]

    def pop_many(self, count: int) -> list[int]:
        """Take so many out of the first lane, by rank; the caller knows that there are as many.

        As `pop` would one by one, written out for speed.
        """
        heap, entry, lane_of, rank_of = self._heaps[0], self._entry, self._lane, self._rank
        first, twin, children = self._first, self._twin, self._children
        key_of, parent_of = self.key_of, self._parent
        self.sizes[0] -= count
        taken: list[int] = []
        while len(taken) < count:
            _, serial, block = heappop(heap)
            if entry[block] != serial:
                continue
            taken.append(block)
            lane_of[block] = -1
            entry[block] = 0
            key, parent = key_of[block], parent_of[block]
            if twin[block] or first[key] != block:
                self._unlink(block)
            else:
                del first[key]
            siblings = children[parent] - 1
            if siblings:
                children[parent] = siblings
                continue
            del children[parent]
            above = first.get(parent, 0)
            while above:
                self._serial = entry[above] = serial = self._serial + 1
                heappush(heap, (rank_of[above], serial, above))
                above = twin[above]
        return taken

    def pop(self, lane: int = 0) -> int:
        """Take out the candidate of the smallest rank in a lane; 0: it has none."""
        heap, entry = self._heaps[lane], self._entry
        while heap:
            _, serial, block = heappop(heap)
            if entry[block] == serial:
                self.discard(block)
                return block
        return 0

    def rank_of(self, block: int) -> Any:
        """Return the rank that a block was last taken in with."""
        return self._rank[block]

    def __copy__(self) -> "Leaves":
        twin = Leaves.__new__(Leaves)
        for name in self.__slots__:
            setattr(twin, name, copy.copy(getattr(self, name)))
        twin._heaps = [heap.copy() for heap in self._heaps]
        return twin

    def _unlink(self, block: int) -> None:
        key, first, twin = self.key_of[block], self._first, self._twin
        at, following = first[key], twin[block]
        if at != block:
            while twin[at] != block:
                at = twin[at]
            twin[at] = following
        elif following:
            first[key] = following
        else:
            del first[key]

    def _push(self, block: int) -> None:
        lane = self._lane[block]
        heap = self._heaps[lane]
        self._serial += 1
        self._entry[block] = self._serial
        heappush(heap, (self._rank[block], self._serial, block))
        if len(heap) > self._limits[lane]:
            entry = self._entry
            heap[:] = [each for each in heap if entry[each[2]] == each[1]]
            heapify(heap)
            self._limits[lane] = max(_FEW_ENTRIES, 2 * len(heap))
