"""One node of the tree of cached prefixes."""

from collections.abc import Hashable, Sequence


class TreeNode:
    """A run of keys below its parent.

    Attributes:
        keys: its own keys, of the type that was inserted.
        parent: None for the root and for a node that was evicted.
        children: by the first of their keys, in order of creation.
        locks: requests that hold it or something below it.
        touched: tick of the last use.
        hits: how many requests inserted it.
        priority: the largest of those that inserted it.
        depth: tokens from the root to its end.
        history: largest depth there ever was at or below it, tokens.
    """

    __slots__ = (
        "children",
        "depth",
        "history",
        "hits",
        "keys",
        "locks",
        "parent",
        "priority",
        "touched",
    )

    def __init__(
        self, keys: Sequence[Hashable], parent: "TreeNode | None", depth: int, history: int
    ) -> None:
        self.keys = keys
        self.parent = parent
        self.children: dict[Hashable, TreeNode] = {}
        self.locks = 0
        self.touched = 0
        self.hits = 0
        self.priority = 0
        self.depth = depth
        self.history = history

    @property
    def is_evictable_leaf(self) -> bool:
        """Whether it may be evicted now: in the tree, childless and unlocked."""
        return not self.children and not self.locks and self.parent is not None
