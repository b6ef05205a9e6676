"""What is cheap to compute again and seldom used goes first (Greedy-Dual-Size-Frequency)."""

from collections.abc import Sequence
from itertools import repeat

from twin.paging.eviction.leaves import Leaves


class CostAware:
    """Implements `LeafPolicy`: rank = L + uses x recompute cost / size.

    L is the rank of the block evicted last, so that what is not used any more ages (Cherkasova,
    "Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching Policy", HP Labs
    1998). All blocks are of one size. The n-th block of a sequence costs 1 + n / parity: each of
    its tokens attends to all before it, the rest of the network costs every token the same. That
    is what one block costs as long as those before it stay, which `Leaves` sees to.

    Args:
        num_blocks: of the pool.
        parity_blocks: blocks of context at which attention costs as much as the rest.
    """

    lanes = 1

    def __init__(self, num_blocks: int, parity_blocks: float) -> None:
        self._uses = [0] * num_blocks
        self._position = [0] * num_blocks
        self._parity_blocks = parity_blocks
        self._age = 0.0

    def cached(self, leaves: Leaves, blocks: Sequence[int], full: range) -> None:  # noqa: ARG002
        """See `LeafPolicy.cached`."""
        for place in full:
            block = blocks[place]
            self._uses[block] = 1
            self._position[block] = place

    def hit(self, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.hit`."""
        uses = self._uses
        for block in blocks:
            uses[block] += 1

    def release(self, leaves: Leaves, blocks: Sequence[int]) -> None:
        """See `LeafPolicy.release`."""
        age, uses, position, parity = self._age, self._uses, self._position, self._parity_blocks
        ranks = [age + uses[block] * (1.0 + (position[block] + 0.5) / parity) for block in blocks]
        leaves.add(blocks, ranks, repeat(0))

    def evict(self, leaves: Leaves, count: int) -> list[int]:
        """See `LeafPolicy.evict`."""
        blocks = leaves.pop_many(count)
        self._age = leaves.rank_of(blocks[-1])
        return blocks
