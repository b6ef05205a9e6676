"""What a scheduler of vLLM would hold after some quiet calls, without taking them.

For whoever asks in the middle of a run of decode steps (`twin.scheduling.quiet_run`): the state
is that right after so many schedule calls.
"""

from collections.abc import Sequence
from itertools import islice

from twin.scheduling.core import EngineCore


def blocks_taken(core: EngineCore, calls: int) -> int:
    """Return the KV blocks that so many quiet calls take."""
    size = core.limits.block_size
    return sum(
        max(0, -(-(state.num_computed + calls) // size) - len(state.blocks))
        for state in core.running
    )


def cached_prefix_keys(core: EngineCore, keys: Sequence[int], calls: int) -> int:
    """Return how many of these leading keys can be found after so many quiet calls.

    Such calls make full blocks of answers findable, and forget the free blocks they take, those
    that go next; nothing is freed meanwhile.
    """
    pool = core.pool
    if pool.cache is None:
        return 0
    hits = pool.longest_hit(keys, len(keys))
    if not calls:
        return len(hits)
    found = len(hits)
    taken: frozenset[int] = frozenset()
    if pool.count_unheld(hits) or found < len(keys):
        taken = frozenset(islice(pool.free_blocks(), blocks_taken(core, calls)))
    if taken and not taken.isdisjoint(hits):
        found = next(place for place, block in enumerate(hits) if block in taken)
    while found < len(keys) and _is_found(core, keys[found], found, (calls, taken)):
        found += 1
    return found


def _is_found(core: EngineCore, key: int, place: int, run: tuple[int, frozenset[int]]) -> bool:
    """Whether the block with a key at a place of a prompt can be found after a run."""
    (calls, taken), cache = run, core.pool.cache
    if cache is not None and any(block not in taken for block in cache.blocks_of(key)):
        return True
    size, late = core.limits.block_size, int(core.limits.async_scheduling)
    return any(
        state.num_cached_blocks <= place < (state.num_computed + calls - late) // size
        and state.block_keys[place] == key
        for state in core.running
    )
