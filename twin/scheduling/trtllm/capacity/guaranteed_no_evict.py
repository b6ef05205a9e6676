"""GUARANTEED_NO_EVICT: a request starts only when its blocks to completion are free."""

from twin.scheduling.trtllm.active import ActiveRequest
from twin.scheduling.trtllm.capacity.prefix_deferral import PrefixDeferral
from twin.scheduling.trtllm.capacity.selection import Selection
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.limits import TrtllmLimits


class GuaranteedNoEvict:
    """Generations always run; contexts follow in order of arrival while their blocks last.

    Nothing is reserved: what the generations still need is summed anew at every iteration.
    Nobody is ever paused.
    """

    def __init__(self, limits: TrtllmLimits, kv: KvCache) -> None:
        self._limits = limits
        self._kv = kv

    def select(self, active: list[ActiveRequest]) -> Selection:
        """See `CapacityScheduler.select`: generations first, then contexts."""
        pending = [a for a in active if a.state.num_computed < a.context_tokens]
        if not pending:
            # Fetching never lets more become active than may be taken.
            return Selection(active)
        generations = [a for a in active if a.state.num_computed >= a.context_tokens]
        available = self._kv.num_free - sum(map(_remaining_blocks, generations))
        deferral = PrefixDeferral(self._limits, self._kv, active)
        room = self._limits.max_batch_size - len(generations)
        contexts = take_pending(pending, self._kv, available, room, deferral)
        if not contexts and not generations:
            # A context deferred once may stand, not fitting, before a half-done one that holds
            # blocks: both would wait for ever. The half-done ones go on; the source has no such
            # rule and would stand still.
            started = [a for a in pending if not a.is_first_chunk]
            contexts = take_pending(started, self._kv, available, room, None)
        return Selection(generations + contexts)

    def keeps_out(self, active: list[ActiveRequest]) -> bool:
        """See `CapacityScheduler.keeps_out`: what no generation will need stays the same."""
        pending = [a for a in active if a.is_context]
        if not pending:
            return True
        generations = [a for a in active if not a.is_context]
        if any(not a.is_first_chunk for a in pending):
            return False
        if len(generations) >= self._limits.max_batch_size:
            return True
        head = pending[0]
        available = self._kv.num_free - sum(map(_remaining_blocks, generations))
        if _remaining_blocks(head) - _credit(head, self._kv) <= available:
            return False
        return not _credit_may_grow(head, generations, self._kv)


def take_pending(
    pending: list[ActiveRequest],
    kv: KvCache,
    available: int,
    room: int,
    deferral: PrefixDeferral | None,
) -> list[ActiveRequest]:
    """Return the contexts that fit, in order; the first that does not stops all behind it.

    Args:
        pending: contexts in order of arrival, half-done ones included.
        kv: the blocks.
        available: free blocks that no generation will need.
        room: how many may be taken.
        deferral: who is skipped without stopping; None: nobody.
    """
    taken: list[ActiveRequest] = []
    for request in pending:
        if len(taken) >= room:
            break
        if deferral is not None and deferral.defers(request):
            continue
        needed = _remaining_blocks(request) - _credit(request, kv)
        if needed > available:
            break
        available -= needed
        taken.append(request)
        if deferral is not None and request.is_first_chunk:
            deferral.claim(request)
    return taken


def _remaining_blocks(request: ActiveRequest) -> int:
    return request.total_blocks - len(request.state.blocks)


def _credit(request: ActiveRequest, kv: KvCache) -> int:
    """Return the blocks a context need not find free (stratum main).

    A matched block that nobody holds is itself among the free ones, so only the others count.
    """
    if not kv.limits.charges_reuse or not request.is_first_chunk:
        return 0
    return kv.count_held(kv.matched(request.state, request.context_tokens))


def _credit_may_grow(request: ActiveRequest, generations: list[ActiveRequest], kv: KvCache) -> bool:
    """Whether a generation may store a block that a context could reuse next."""
    if not kv.limits.charges_reuse:
        return False
    keys, hits = request.state.block_keys, len(kv.matched(request.state, request.context_tokens))
    if hits >= (request.context_tokens - 1) // kv.limits.tokens_per_block:
        return False
    following = keys[hits : hits + 1]
    return any(a.state.block_keys[hits : hits + 1] == following for a in generations)
