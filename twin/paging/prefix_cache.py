"""Which block holds which content: block keys to blocks and back."""

from collections.abc import Sequence


class PrefixCache:
    """Maps the chained key of a full block to the blocks that hold its content.

    Equal content may stand in several blocks, because a block that fills up is never swapped for
    an older twin: block tables only grow. A look-up takes the one cached first (vLLM 0.33.0,
    `BlockHashToBlockMap`).

    Attributes:
        key_of: key by block; None for a block no look-up can find.
    """

    __slots__ = ("_first", "_twins", "key_of")

    def __init__(self, num_blocks: int) -> None:
        self.key_of: list[int | None] = [None] * num_blocks
        self._first: dict[int, int] = {}
        self._twins: dict[int, list[int]] = {}

    def longest_hit(self, keys: Sequence[int], max_blocks: int) -> list[int]:
        """Return the blocks of the longest cached prefix, at most `max_blocks`, in token order."""
        first = self._first
        hits: list[int] = []
        for key in keys[:max_blocks]:
            block = first.get(key)
            if block is None:
                break
            hits.append(block)
        return hits

    def blocks_of(self, key: int) -> list[int]:
        """Return the blocks that hold the content of a key, the one cached first before all."""
        first = self._first.get(key)
        return [] if first is None else [first, *self._twins.get(key, ())]

    def insert_run(self, keys: Sequence[int], blocks: Sequence[int]) -> None:
        """Make blocks, which have no key yet, findable, each under its key and in this order."""
        key_of, first = self.key_of, self._first
        for key, block in zip(keys, blocks, strict=True):
            key_of[block] = key
            if key in first:
                self._twins.setdefault(key, []).append(block)
            else:
                first[key] = block

    def forget(self, block: int) -> None:
        """Drop the content of `block`; its oldest twin, if any, takes its place."""
        key = self.key_of[block]
        if key is None:
            return
        self.key_of[block] = None
        twins = self._twins.get(key)
        if twins is None:
            del self._first[key]
            return
        if self._first[key] != block:
            twins.remove(block)
        else:
            self._first[key] = twins.pop(0)
        if not twins:
            del self._twins[key]
