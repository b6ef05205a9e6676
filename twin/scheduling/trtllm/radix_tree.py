"""The radix tree of KV blocks: which block holds which content, and what follows it."""

from collections.abc import Collection, Sequence

from twin.request import Request
from twin.scheduling.trtllm.siblings import Siblings, prefix_key

ROOT = -1


class RadixTree:
    """Blocks by the chained key of their content, each under the block before it.

    There is one block a content: a second one computed meanwhile stays outside, and what follows
    it hangs under the first. The last block of a removed request may be stored partly filled.

    Args:
        num_blocks: blocks of the pool.
        tokens_per_block: tokens of a full block.

    Attributes:
        num_children: successors of each block.
    """

    __slots__ = (
        "_block_of",
        "_children",
        "_filled",
        "_key_of",
        "_origin",
        "_parent",
        "_siblings",
        "num_children",
        "tokens_per_block",
    )

    def __init__(self, num_blocks: int, tokens_per_block: int) -> None:
        self.tokens_per_block = tokens_per_block
        self.num_children = [0] * num_blocks
        self._block_of: dict[int, int] = {}
        self._key_of: list[int | None] = [None] * num_blocks
        self._parent = [ROOT] * num_blocks
        self._children: dict[int, dict[int, None]] = {}
        self._filled = [0] * num_blocks  # tokens; 0: not in the tree
        self._origin: list[tuple[Request, int] | None] = [None] * num_blocks
        # By (position, identity up to and including the first token there).
        self._siblings: dict[tuple[int, int], Siblings] = {}

    def __contains__(self, block: int) -> bool:
        return self._filled[block] > 0

    def block(self, key: int) -> int | None:
        """Return the full block with a key; None: there is none."""
        return self._block_of.get(key)

    def key(self, block: int) -> int | None:
        """Return the key of a stored block; None: it is partly filled."""
        return self._key_of[block]

    def parent(self, block: int) -> int:
        """Return what a stored block follows: a block, or `ROOT`."""
        return self._parent[block]

    def children(self, block: int) -> Collection[int]:
        """Return the successors of a block; to read only."""
        return self._children.get(block, ())

    def matched(self, keys: Sequence[int], max_blocks: int) -> list[int]:
        """Return the blocks of the longest stored prefix, at most `max_blocks`, in order."""
        block_of = self._block_of
        hits: list[int] = []
        for key in keys[:max_blocks]:
            block = block_of.get(key)
            if block is None:
                break
            hits.append(block)
        return hits

    def holds(self, keys: Sequence[int], count: int) -> bool:
        """Whether the first `count` blocks are stored."""
        return not count or keys[count - 1] in self._block_of

    def store(
        self, request: Request, keys: Sequence[int], blocks: Sequence[int], span: range
    ) -> None:
        """Put the full blocks at the positions of `span` into the tree where they are missing."""
        first = span.start
        if not self.holds(keys, first):
            first = 0  # a predecessor that another request had stored is gone
        parent = self._block_of[keys[first - 1]] if first else ROOT
        for position in range(first, span.stop):
            key = keys[position]
            block = self._block_of.get(key)
            if block is None:
                block = blocks[position]
                self._block_of[key] = block
                self._key_of[block] = key
                self._insert(request, block, parent, position, self.tokens_per_block)
            parent = block

    def store_tail(
        self, request: Request, keys: Sequence[int], blocks: Sequence[int], tokens: int
    ) -> None:
        """Put the partly filled last block of a request's first `tokens` tokens into the tree."""
        position, filled = divmod(tokens, self.tokens_per_block)
        if not filled or blocks[position] in self:
            return
        parent = ROOT if not position else self._block_of.get(keys[position - 1])
        if parent is None:
            return
        siblings = self._siblings.get(self._place(request, position))
        if siblings is not None and siblings.holds_exactly(request, filled):
            return
        self._insert(request, blocks[position], parent, position, filled)

    def partial_match(
        self, request: Request, position: int, max_tokens: int, allowed: Sequence[int] | None
    ) -> tuple[int, int] | None:
        """Return the child with the longest common prefix after `position` matched blocks.

        Args:
            request: whose tokens are compared.
            position: index of the block.
            max_tokens: most tokens of it that may match.
            allowed: reference counts; only blocks with none, and no successor, count. None: all.

        Returns:
            (block, tokens matched), of equal ones the first stored; None: not even one token.
        """
        siblings = self._siblings.get(self._place(request, position))
        if max_tokens < 1 or siblings is None:
            return None
        if allowed is None:
            return siblings.longest_match(request, max_tokens, None)
        num_children = self.num_children
        return siblings.longest_match(
            request, max_tokens, lambda block: not (allowed[block] or num_children[block])
        )

    def remove(self, block: int) -> None:
        """Take a block and whatever follows it out of the tree."""
        doomed = [block]
        for ancestor in doomed:  # grows while it is walked: a chain may be very long
            doomed += self._children.get(ancestor, ())
        for each in reversed(doomed):
            self._remove_leaf(each)

    def _remove_leaf(self, block: int) -> None:
        key, origin = self._key_of[block], self._origin[block]
        if key is not None:
            del self._block_of[key]
            self._key_of[block] = None
        if origin is None:  # pragma: no cover - every block in the tree has one
            return
        request, position = origin
        place = self._place(request, position)
        self._siblings[place].remove(block)
        if not self._siblings[place]:
            del self._siblings[place]
        parent = self._parent[block]
        if parent != ROOT:
            del self._children[parent][block]
            if not self._children[parent]:
                del self._children[parent]
            self.num_children[parent] -= 1
        self._origin[block] = None
        self._filled[block] = 0

    def _insert(
        self, request: Request, block: int, parent: int, position: int, filled: int
    ) -> None:
        self._filled[block] = filled
        self._origin[block] = (request, position)
        self._parent[block] = parent
        if parent != ROOT:
            self._children.setdefault(parent, {})[block] = None
            self.num_children[parent] += 1
        place = self._place(request, position)
        siblings = self._siblings.get(place)
        if siblings is None:
            siblings = self._siblings[place] = Siblings(position * self.tokens_per_block)
        siblings.add(block, request, filled)

    def _place(self, request: Request, position: int) -> tuple[int, int]:
        return position, prefix_key(request, position * self.tokens_per_block + 1)
