"""The tree of cached prefixes: nodes of whole keys, split where prefixes part."""

from collections.abc import Hashable, Iterator, Sequence, Set

from twin.scheduling.sglang.eviction import EvictionQueue, eviction_key
from twin.scheduling.sglang.tree_node import TreeNode

Keys = Sequence[Hashable]
"""One hashable a page (or a few pages): the page's own tokens, or a chained key."""


class RadixTree:
    """Cached token runs, who holds them, and which may go (SGLang 0.5.23, full attention only).

    A lock counts on the whole path to the root. Every operation is one tick of a clock, and
    touches the nodes it walks: two nodes touched in one tick lie on one path, so that never both
    are leaves and ties need no rule.

    Args:
        key_tokens: tokens a key stands for.
        policy: name in `twin.scheduling.sglang.eviction.EVICTION_KEYS`.
        tlru: threshold and estimate of the next prompt, tokens.

    Attributes:
        root: holds no tokens and is never evicted.
        evictable: tokens in nodes that nobody locks.
        protected: tokens in locked nodes.
    """

    __slots__ = ("_clock", "_leaves", "evictable", "key_tokens", "protected", "root")

    def __init__(
        self, key_tokens: int = 1, policy: str = "lru", tlru: tuple[int, int] = (0, 0)
    ) -> None:
        self.key_tokens = key_tokens
        self.root = TreeNode((), None, 0, 0)
        self.evictable = 0
        self.protected = 0
        self._clock = 0
        self._leaves = EvictionQueue(eviction_key(policy, tlru))

    def match(self, keys: Keys, count: int) -> tuple[TreeNode, int]:
        """Return the last node of the longest cached prefix of `keys[:count]` and its keys.

        A prefix that ends inside a node splits it. The whole path is touched.
        """
        if count <= 0:
            return self.root, 0
        self._clock += 1
        node, at = self.root, 0
        while at < count:
            child = node.children.get(keys[at])
            if child is None:
                break
            common = _common(child.keys, keys, at, count)
            at += common
            if common < len(child.keys):
                node = self._split(child, common)
                break
            node = child
        self._touch(node)
        return node, at

    def cached_keys(self, keys: Keys, gone: Set[TreeNode] = frozenset()) -> int:
        """Return how many of these leading keys it holds; nothing is touched or split.

        `gone`: nodes that do not count.
        """
        node, at, count = self.root, 0, len(keys)
        while at < count:
            child = node.children.get(keys[at])
            if child is None or child in gone:
                break
            common = _common(child.keys, keys, at, count)
            at += common
            if common < len(child.keys):
                break
            node = child
        return at

    def insert(
        self, keys: Keys, count: int, *, counted: int = 0, priority: int = 0
    ) -> tuple[TreeNode, int]:
        """Insert `keys[:count]`; return the node they end at and how many were there before.

        What was not there becomes one leaf, unlocked.

        Args:
            keys: of the whole request.
            count: how many of them to insert.
            counted: keys whose nodes have counted this request as a hit already.
            priority: the nodes' priority is raised to it.
        """
        self._clock += 1
        node, at = self.root, 0
        node.touched = self._clock
        while at < count:
            child = node.children.get(keys[at])
            if child is None:
                break
            common = _common(child.keys, keys, at, count)
            node = child if common == len(child.keys) else self._split(child, common)
            at += common
            node.touched = self._clock
            node.priority = max(node.priority, priority)
            if at > counted:
                node.hits += 1
            self._queue(node)
        if at == count:
            return node, at
        return self._add_leaf(node, keys[at:count], priority), at

    def lock(self, node: TreeNode) -> None:
        """Keep a node and its ancestors from eviction; locks count."""
        size = self.key_tokens
        while node.parent is not None:
            if not node.locks:
                tokens = len(node.keys) * size
                self.evictable -= tokens
                self.protected += tokens
            node.locks += 1
            node = node.parent

    def unlock(self, node: TreeNode) -> None:
        """Take one lock back."""
        size = self.key_tokens
        while node.parent is not None:
            node.locks -= 1
            if not node.locks:
                tokens = len(node.keys) * size
                self.evictable += tokens
                self.protected -= tokens
                self._queue(node)
            node = node.parent

    def evict(self, tokens: int) -> int:
        """Evict whole leaves until `tokens` are free or nothing is left; return how many."""
        freed = 0
        while freed < tokens:
            leaf = self._leaves.pop()
            if leaf is None:
                break
            parent = leaf.parent
            if parent is None:
                continue
            del parent.children[leaf.keys[0]]
            leaf.parent = None
            freed += len(leaf.keys) * self.key_tokens
            self._queue(parent)
        self.evictable -= freed
        return freed

    def foreseen_evictions(self) -> Iterator[TreeNode]:
        """Iterate over the nodes as `evict` would take them; none is taken."""
        return self._leaves.foreseen()

    def nodes(self) -> Iterator[TreeNode]:
        """Iterate over all nodes but the root, parents first."""
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def _touch(self, node: TreeNode) -> None:
        clock = self._clock
        last: TreeNode | None = node
        while last is not None:
            last.touched = clock
            last = last.parent
        self._queue(node)

    def _queue(self, node: TreeNode) -> None:
        """Note a node's present rank, if it may be evicted."""
        if node.is_evictable_leaf:
            self._leaves.push(node)

    def _split(self, node: TreeNode, at: int) -> TreeNode:
        """Cut a node after `at` keys; return the new node in front, `node` becomes the rest."""
        parent = node.parent
        if parent is None:
            raise ValueError("the root cannot be split")
        depth = node.depth - (len(node.keys) - at) * self.key_tokens
        front = TreeNode(node.keys[:at], parent, depth, node.history)
        front.locks, front.hits, front.priority = node.locks, node.hits, node.priority
        parent.children[front.keys[0]] = front
        node.keys = node.keys[at:]
        node.parent = front
        front.children[node.keys[0]] = node
        front.touched = node.touched = self._clock
        self._queue(node)
        return front

    def _add_leaf(self, parent: TreeNode, keys: Keys, priority: int) -> TreeNode:
        tokens = len(keys) * self.key_tokens
        depth = parent.depth + tokens
        leaf = TreeNode(keys, parent, depth, depth)
        leaf.touched, leaf.hits, leaf.priority = self._clock, 1, priority
        parent.children[keys[0]] = leaf
        self.evictable += tokens
        above: TreeNode | None = parent
        while above is not None and above.history < depth:
            above.history = depth
            above = above.parent
        self._queue(leaf)
        return leaf


def _common(own: Keys, keys: Keys, at: int, count: int) -> int:
    """Return how many leading keys of a node equal `keys[at:count]`; at least the first does.

    Slices are compared at C speed, halving where they differ.
    """
    most = min(len(own), count - at)
    if own[:most] == keys[at : at + most]:
        return most
    same, differs = 1, most
    while differs - same > 1:
        middle = (same + differs) // 2
        if own[same:middle] == keys[at + same : at + middle]:
            same = middle
        else:
            differs = middle
    return same
