"""What a scheduler of TensorRT-LLM would hold after some quiet iterations, without taking them.

For whoever asks in the middle of a run (`twin.scheduling.trtllm.quiet_run`): the state is that
right after so many decisions, the last of them with no step processed after it.
"""

from collections.abc import Sequence

from twin.request import RequestState
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.later_tree import LaterTree
from twin.scheduling.trtllm.quiet_run import events_of


def blocks_taken(states: list[RequestState], kv: KvCache, calls: int) -> int:
    """Return the KV blocks that so many quiet iterations take."""
    size = kv.limits.tokens_per_block
    held = (state.num_computed for state in states)
    return sum(-(-(tokens + calls) // size) - -(-tokens // size) for tokens in held)


def cached_prefix_keys(
    states: list[RequestState], kv: KvCache, keys: Sequence[int], calls: int
) -> int:
    """Return how many of these leading keys are stored after so many quiet iterations.

    They take free blocks, whose content is forgotten, and store those that get full.
    """
    if kv.tree is None:
        return 0
    later = LaterTree(kv.tree)
    taken: set[int] = set()
    blocks = [list(state.blocks) for state in states] if calls else []
    stored = [state.num_cached_blocks for state in states]
    for step, stores, place, state, tokens in events_of(states, kv.limits, calls):
        if not stores:
            block = _next_free(kv, later, taken)
            taken.add(block)
            blocks[place].append(block)
            if block in later:
                later.remove(block)
        elif step < calls:
            full = tokens // kv.limits.tokens_per_block
            later.store(state.block_keys, blocks[place], range(stored[place], full))
            stored[place] = full
    return later.count_matched(keys)


def _next_free(kv: KvCache, later: LaterTree, taken: set[int]) -> int:
    """See `KvCache.allocate`; those `taken` are not free any more."""
    first = None
    for block in kv.free_blocks():
        if block in taken:
            continue
        if not later.children(block):
            return block
        first = block if first is None else first
    if first is None:
        raise ValueError("more blocks asked for than are free")
    return first
