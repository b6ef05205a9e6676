"""What a scheduler of SGLang would hold after some quiet turns, without taking them.

For whoever asks in the middle of a run of decodes (`twin.scheduling.sglang.quiet_run`).
"""

from collections.abc import Sequence

from twin.scheduling.sglang.core import SglangCore
from twin.scheduling.sglang.quiet_run import pages_by_turn
from twin.scheduling.sglang.tree_node import TreeNode


def blocks_taken(core: SglangCore, calls: int) -> int:
    """Return the pages that so many quiet turns take; what they evict was free before."""
    page = core.limits.page_size
    held = (job.state.num_computed for job in core.running)
    return sum(-(-(tokens + calls) // page) - -(-tokens // page) for tokens in held)


def cached_prefix_keys(core: SglangCore, keys: Sequence[int], calls: int) -> int:
    """Return how many of these leading keys the tree holds after so many quiet turns.

    Such turns keep nothing in it, and evict what they have no room for.
    """
    return core.cache.tree.cached_keys(keys, _evicted(core, calls))


def _evicted(core: SglangCore, calls: int) -> set[TreeNode]:
    """Return the nodes that so many quiet turns evict, as `quiet_run.skip_calls` does."""
    page, free, gone = core.limits.page_size, core.cache.free, set[TreeNode]()
    room = len(core.running) * page
    if not calls or free >= blocks_taken(core, calls) * page + room:
        return gone
    tree = core.cache.tree
    leaves = tree.foreseen_evictions()
    for pages in pages_by_turn(core, calls):
        while free < room and (leaf := next(leaves, None)) is not None:
            gone.add(leaf)
            free += len(leaf.keys) * tree.key_tokens
        free -= pages * page
    return gone
