"""MAX_UTILIZATION: a request runs when the blocks of its next step are free."""

from collections import Counter

from twin.scheduling.trtllm.active import ActiveRequest
from twin.scheduling.trtllm.capacity.prefix_deferral import PrefixDeferral
from twin.scheduling.trtllm.capacity.selection import Selection
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.limits import TrtllmLimits


class MaxUtilization:
    """One pass in order of arrival; who does not fit pauses the last started request behind it.

    A paused request keeps its place among the active ones, so it comes back before later
    arrivals. Its blocks count as free for the rest of the pass.
    """

    def __init__(self, limits: TrtllmLimits, kv: KvCache) -> None:
        self._limits = limits
        self._kv = kv

    def select(self, active: list[ActiveRequest]) -> Selection:
        """See `CapacityScheduler.select`: in order of arrival."""
        limits = self._limits
        block_size, room = limits.tokens_per_block, limits.max_batch_size
        deferral = PrefixDeferral(limits, self._kv, active)
        free, needed_so_far = self._kv.num_free, 0
        selection = Selection([])
        taken, given_back = selection.taken, Counter[int]()
        place, end = 0, len(active)
        while place < end:
            request = active[place]
            state = request.state
            computed = state.num_computed
            first_chunk = False
            if computed >= request.context_tokens:
                # The KV sequence grows by one token, never past the foreseen end.
                needed = 0 if computed % block_size else 1
            elif state.blocks:
                needed = 0
            else:
                if deferral.defers(request):
                    place += 1
                    continue
                needed = -(-request.context_tokens // block_size)
                first_chunk = True
            if needed_so_far + needed <= free and len(taken) < room:
                needed_so_far += needed
                taken.append(request)
                if first_chunk:
                    deferral.claim(request)
                place += 1
                continue
            victim = _last_started(active, place, end)
            if victim is None:
                break
            selection.paused.append(active[victim])
            free += self._freed(active[victim], given_back)
            end = victim
        return selection

    def keeps_out(self, active: list[ActiveRequest]) -> bool:
        """See `CapacityScheduler.keeps_out`: free blocks only get fewer."""
        generations, size = 0, self._limits.tokens_per_block
        free = self._kv.num_free
        while generations < len(active) and not active[generations].is_context:
            free -= not active[generations].state.num_computed % size
            generations += 1
        if any(not (a.is_context and a.is_first_chunk) for a in active[generations:]):
            return False
        if generations in (len(active), self._limits.max_batch_size):
            return True
        return -(-active[generations].context_tokens // size) > free

    def _freed(self, victim: ActiveRequest, given_back: Counter[int]) -> int:
        """Return how many blocks become free: those no other holder, not paused too, has."""
        references, freed = self._kv.references, 0
        for block in victim.state.blocks:
            given_back[block] += 1
            freed += given_back[block] == references[block]
        return freed


def _last_started(active: list[ActiveRequest], start: int, end: int) -> int | None:
    """Return the place of the last request that holds blocks."""
    for place in range(end - 1, start - 1, -1):
        if not active[place].is_first_chunk:
            return place
    return None
