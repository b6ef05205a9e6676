"""Blocks that begin with the same token after the same prefix: who shares how many tokens?"""

from collections.abc import Callable

from twin.request import Request


def prefix_key(request: Request, num_tokens: int) -> int:
    """Return the identity of the first `num_tokens` tokens of a request.

    Equal keys at equal lengths mean equal tokens; a request without content equals itself alone.
    """
    content = request.content
    return ~request.index if content is None else content.block_keys(num_tokens, num_tokens)[0]


class Siblings:
    """Blocks at one position of the tree whose first tokens, and all before, are equal.

    Thousands of questions may follow one system prompt, so the longest common prefix is found by
    bisection over its length: for each length ever asked for, blocks are kept by the identity of
    that many tokens.

    Args:
        start: tokens before the position.
    """

    __slots__ = ("_blocks", "_by_length", "_start")

    def __init__(self, start: int) -> None:
        self._start = start
        self._blocks: dict[int, tuple[Request, int]] = {}
        self._by_length: dict[int, dict[int, dict[int, None]]] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, block: int, request: Request, filled: int) -> None:
        """Put in a block that holds `filled` tokens of a request."""
        self._blocks[block] = (request, filled)
        for length, by_key in self._by_length.items():
            if length <= filled:
                self._enter(by_key, block, request, length)

    def remove(self, block: int) -> None:
        """Take a block out."""
        request, filled = self._blocks.pop(block)
        for length, by_key in self._by_length.items():
            if length <= filled:
                key = prefix_key(request, self._start + length)
                del by_key[key][block]
                if not by_key[key]:
                    del by_key[key]

    def longest_match(
        self, request: Request, max_tokens: int, counts: Callable[[int], bool] | None
    ) -> tuple[int, int] | None:
        """Return (block, common tokens) of the longest match, of equal ones the first put in.

        Args:
            request: whose tokens are compared; its first token at the position is theirs.
            max_tokens: most tokens that may match, at least 1.
            counts: which blocks count; None: all.
        """
        best = self._first(request, max_tokens, counts)
        if best is not None:
            return best, max_tokens
        low, high = 0, max_tokens  # `low` tokens match (0: nothing known), `high` do not
        while high - low > 1:
            middle = (low + high) // 2
            block = self._first(request, middle, counts)
            if block is None:
                high = middle
            else:
                low, best = middle, block
        return None if best is None else (best, low)

    def holds_exactly(self, request: Request, filled: int) -> bool:
        """Whether a block holds just these `filled` tokens."""
        by_key = self._index(filled)
        equal = by_key.get(prefix_key(request, self._start + filled), ())
        return any(self._blocks[block][1] == filled for block in equal)

    def _first(
        self, request: Request, length: int, counts: Callable[[int], bool] | None
    ) -> int | None:
        equal = self._index(length).get(prefix_key(request, self._start + length), ())
        return next((block for block in equal if counts is None or counts(block)), None)

    def _index(self, length: int) -> dict[int, dict[int, None]]:
        by_key = self._by_length.get(length)
        if by_key is None:
            by_key = self._by_length[length] = {}
            for block, (request, filled) in self._blocks.items():
                if length <= filled:
                    self._enter(by_key, block, request, length)
        return by_key

    def _enter(
        self, by_key: dict[int, dict[int, None]], block: int, request: Request, length: int
    ) -> None:
        by_key.setdefault(prefix_key(request, self._start + length), {})[block] = None
