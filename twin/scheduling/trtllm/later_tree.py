"""The radix tree of KV blocks as it would be after some changes, none of which is made."""

from collections.abc import Collection, Sequence

from twin.scheduling.trtllm.radix_tree import ROOT, RadixTree


class LaterTree:
    """Notes only what differs from the tree; full blocks alone are stored.

    Args:
        tree: must not change meanwhile.
    """

    __slots__ = ("_block_of", "_children", "_gone", "_stored", "_tree")

    def __init__(self, tree: RadixTree) -> None:
        self._tree = tree
        self._block_of: dict[int, int | None] = {}
        self._children: dict[int, dict[int, None]] = {}
        self._gone: set[int] = set()
        self._stored: dict[int, tuple[int, int]] = {}  # (key, parent) of blocks stored since

    def __contains__(self, block: int) -> bool:
        return block in self._stored or (block in self._tree and block not in self._gone)

    def children(self, block: int) -> Collection[int]:
        """Return the successors of a block."""
        changed = self._children.get(block)
        return self._tree.children(block) if changed is None else changed

    def count_matched(self, keys: Sequence[int]) -> int:
        """Return how many of these leading keys are stored."""
        for place, key in enumerate(keys):
            if self._block(key) is None:
                return place
        return len(keys)

    def store(self, keys: Sequence[int], blocks: Sequence[int], span: range) -> None:
        """See `RadixTree.store`."""
        first = span.start
        parent = self._block(keys[first - 1]) if first else ROOT
        if parent is None:
            first, parent = 0, ROOT
        for position in range(first, span.stop):
            key = keys[position]
            block = self._block(key)
            if block is None:
                block = blocks[position]
                self._block_of[key] = block
                self._stored[block] = key, parent
                if parent != ROOT:
                    self._changing_children(parent)[block] = None
            parent = block

    def remove(self, block: int) -> None:
        """See `RadixTree.remove`."""
        doomed = [block]
        for ancestor in doomed:  # grows while it is walked
            doomed += self.children(ancestor)
        for each in reversed(doomed):
            stored = self._stored.pop(each, None)
            key, parent = stored or (self._tree.key(each), self._tree.parent(each))
            if key is not None:
                self._block_of[key] = None
            if parent != ROOT:
                del self._changing_children(parent)[each]
            if stored is None:
                self._gone.add(each)

    def _block(self, key: int) -> int | None:
        if key in self._block_of:
            return self._block_of[key]
        return self._tree.block(key)

    def _changing_children(self, block: int) -> dict[int, None]:
        if block not in self._children:
            self._children[block] = dict.fromkeys(self._tree.children(block))
        return self._children[block]
