"""The KV blocks of one engine (KV cache manager V1): held, free, and findable again."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from twin.request import RequestState
from twin.scheduling.trtllm.limits import TrtllmLimits
from twin.scheduling.trtllm.radix_tree import RadixTree


class KvCache:
    """Paged KV memory with reference counts: no null block and no watermark.

    A block that nobody holds is free even while it stands in the radix tree. Free blocks go least
    recently released first, and only those without successors in the tree; where there are none
    of these, the first goes with all that follows it.

    Args:
        limits: the policy.

    Attributes:
        limits: the policy.
        usable: blocks that requests can hold.
        num_free: blocks that no request holds.
        references: number of holders by block.
        tree: content; None without block reuse.
    """

    __slots__ = ("_free", "limits", "num_free", "references", "tree", "usable")

    def __init__(self, limits: TrtllmLimits) -> None:
        self.limits = limits
        self.usable = self.num_free = limits.usable_blocks
        self.references = [0] * self.usable
        self.tree = (
            RadixTree(self.usable, limits.tokens_per_block) if limits.enable_block_reuse else None
        )
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(self.usable))

    def allocate(self, count: int, blocks: list[int]) -> None:
        """Append `count` new blocks to `blocks`; what they held is forgotten.

        Raises:
            ValueError: more than `num_free` asked for; the capacity scheduler has to prevent it.
        """
        if count > self.num_free:
            raise ValueError(f"{count} blocks asked for, {self.num_free} free")
        references = self.references
        for _ in range(count):
            block = self._next_free()
            references[block] = 1
            blocks.append(block)
        self.num_free -= count

    def _next_free(self) -> int:
        tree, free = self.tree, self._free
        if tree is None:
            return free.popitem(last=False)[0]
        num_children = tree.num_children
        block = next((block for block in free if not num_children[block]), None)
        if block is None:
            block = next(iter(free))
        del free[block]
        if block in tree:
            tree.remove(block)
        return block

    def release(self, state: RequestState) -> None:
        """Take all blocks from a request, the last first; what it computed can be found again.

        Only tokens known and computed count, so the last token, whose KV may be missing, is left
        out; a last block partly filled is kept where partial reuse can use it.
        """
        blocks, tree, references = state.blocks, self.tree, self.references
        if tree is not None:
            tokens = min(state.num_computed, state.num_tokens - 1)
            if not tree.holds(state.block_keys, state.num_cached_blocks):
                state.num_cached_blocks = 0  # evicted with a predecessor that was not its own
            self.store(state, tokens)
            if self.limits.enable_partial_reuse:
                tree.store_tail(state.request, state.block_keys, blocks, tokens)
        for block in reversed(blocks):
            references[block] -= 1
            if not references[block]:
                self._free[block] = None
                self.num_free += 1
        state.blocks = []
        state.num_cached_blocks = 0

    def store(self, state: RequestState, tokens: int) -> None:
        """Put the full blocks among the first `tokens` tokens of a request into the tree."""
        full = tokens // self.limits.tokens_per_block
        if self.tree is not None and full > state.num_cached_blocks:
            span = range(state.num_cached_blocks, full)
            self.tree.store(state.request, state.block_keys, state.blocks, span)
            state.num_cached_blocks = full

    def matched(self, state: RequestState, context_tokens: int) -> list[int]:
        """Return the stored full blocks of a prompt; its last token is always computed."""
        if self.tree is None:
            return []
        most = (context_tokens - 1) // self.limits.tokens_per_block
        return self.tree.matched(state.block_keys, most)

    def first_new_key(self, state: RequestState, context_tokens: int) -> int | None:
        """Return the key of the first full prompt block not in the tree; None: all are."""
        if self.tree is None:
            return None
        keys = state.block_keys
        full = context_tokens // self.limits.tokens_per_block
        hits = len(self.tree.matched(keys, full))
        return keys[hits] if hits < full else None

    def count_held(self, blocks: Sequence[int]) -> int:
        """Return how many of `blocks` somebody holds: sharing them takes no free block."""
        references = self.references
        return sum(1 for block in blocks if references[block])

    def admit(self, state: RequestState, context_tokens: int) -> int:
        """Give a request the blocks of its whole prompt; return the tokens reused.

        Full matches are shared. After them the child with the longest common prefix is taken over
        or, where it is in use or has successors, copied into a new block; nothing after it is
        matched.
        """
        block_size = self.limits.tokens_per_block
        blocks = self.matched(state, context_tokens)
        self._hold(blocks)
        reused = len(blocks) * block_size
        full = len(blocks)
        if self.tree is not None and self.limits.enable_partial_reuse:
            reused += self._reuse_partly(self.tree, state, context_tokens - 1 - reused, blocks)
        self.allocate(-(-context_tokens // block_size) - len(blocks), blocks)
        state.blocks = blocks
        state.num_cached_blocks = full
        return reused

    def _reuse_partly(
        self, tree: RadixTree, state: RequestState, most: int, blocks: list[int]
    ) -> int:
        """Append the block of a partial match taken over, if any; return the tokens matched."""
        position = len(blocks)
        allowed = None if self.limits.copy_on_partial_reuse else self.references
        most = min(most, self.limits.tokens_per_block)
        match = tree.partial_match(state.request, position, most, allowed)
        if match is None:
            return 0
        block, tokens = match
        if not self.references[block] and not tree.num_children[block]:
            tree.remove(block)
            self._hold([block])
            blocks.append(block)
        return tokens

    def _hold(self, blocks: Sequence[int]) -> None:
        references, free = self.references, self._free
        for block in blocks:
            if not references[block]:
                del free[block]
                self.num_free -= 1
            references[block] += 1

    def free_blocks(self) -> Iterator[int]:
        """Iterate over the free blocks, least recently released first; to read only."""
        return iter(self._free)

    def free_order(self) -> list[int]:
        """Return the free blocks, least recently released first."""
        return list(self._free)
