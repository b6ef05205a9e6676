"""The radix tree of KV blocks: which block holds which content, and what follows it."""

from collections.abc import Sequence

from twin.request import Request

ROOT = -1


def prefix_key(request: Request, num_tokens: int) -> int:
    """Return the identity of the first `num_tokens` tokens of a request.

    Equal keys at equal lengths mean equal tokens; a request without content equals itself alone.
    """
    content = request.content
    return ~request.index if content is None else content.block_keys(num_tokens, num_tokens)[0]


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
        "_prefix_keys",
        "_starts",
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
        # Blocks by (position, identity up to and including their first token): the candidates of
        # a partial match without a look at every child.
        self._starts: dict[tuple[int, int], dict[int, None]] = {}
        self._prefix_keys: list[dict[int, int]] = [{} for _ in range(num_blocks)]

    def __contains__(self, block: int) -> bool:
        return self._filled[block] > 0

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
        for block in self._candidates(request, position):
            if self._filled[block] == filled == self._common(request, block, position, filled):
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
        best, best_tokens = ROOT, 0
        if max_tokens < 1:
            return None
        for block in self._candidates(request, position):
            if allowed is not None and (allowed[block] or self.num_children[block]):
                continue
            most = min(max_tokens, self._filled[block])
            if most > best_tokens:
                tokens = self._common(request, block, position, most)
                if tokens > best_tokens:
                    best, best_tokens = block, tokens
            if best_tokens == max_tokens:
                break
        return (best, best_tokens) if best_tokens else None

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
        start = (position, self._first_token_key(request, position))
        del self._starts[start][block]
        if not self._starts[start]:
            del self._starts[start]
        parent = self._parent[block]
        if parent != ROOT:
            del self._children[parent][block]
            if not self._children[parent]:
                del self._children[parent]
            self.num_children[parent] -= 1
        self._origin[block] = None
        self._filled[block] = 0
        self._prefix_keys[block].clear()

    def _insert(
        self, request: Request, block: int, parent: int, position: int, filled: int
    ) -> None:
        self._filled[block] = filled
        self._origin[block] = (request, position)
        self._parent[block] = parent
        if parent != ROOT:
            self._children.setdefault(parent, {})[block] = None
            self.num_children[parent] += 1
        start = (position, self._first_token_key(request, position))
        self._starts.setdefault(start, {})[block] = None

    def _first_token_key(self, request: Request, position: int) -> int:
        return prefix_key(request, position * self.tokens_per_block + 1)

    def _candidates(self, request: Request, position: int) -> Sequence[int]:
        start = (position, self._first_token_key(request, position))
        return tuple(self._starts.get(start, ()))

    def _common(self, request: Request, block: int, position: int, most: int) -> int:
        """Return how many of the first `most` tokens of a block a request shares; at least 1."""
        start = position * self.tokens_per_block
        if self._prefix_key_of(block, start + most) == prefix_key(request, start + most):
            return most
        low, high = 1, most  # `low` tokens are equal, `high` are not
        while high - low > 1:
            middle = (low + high) // 2
            length = start + middle
            if self._prefix_key_of(block, length) == prefix_key(request, length):
                low = middle
            else:
                high = middle
        return low

    def _prefix_key_of(self, block: int, num_tokens: int) -> int:
        known = self._prefix_keys[block]
        key = known.get(num_tokens)
        if key is None:
            origin = self._origin[block]
            if origin is None:  # pragma: no cover - candidates are in the tree
                raise KeyError(block)
            key = known[num_tokens] = prefix_key(origin[0], num_tokens)
        return key
