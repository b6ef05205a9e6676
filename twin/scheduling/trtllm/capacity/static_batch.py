"""STATIC_BATCH: a batch runs to its end before the next one starts."""

from twin.scheduling.trtllm.active import ActiveRequest
from twin.scheduling.trtllm.capacity.guaranteed_no_evict import take_pending
from twin.scheduling.trtllm.capacity.selection import Selection
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.limits import TrtllmLimits


class StaticBatch:
    """As GUARANTEED_NO_EVICT, but contexts are looked at only when there is no generation.

    There is no prefix deferral.
    """

    def __init__(self, limits: TrtllmLimits, kv: KvCache) -> None:
        self._limits = limits
        self._kv = kv

    def select(self, active: list[ActiveRequest]) -> Selection:
        """See `CapacityScheduler.select`."""
        generations = [a for a in active if a.state.num_computed >= a.context_tokens]
        if generations:
            return Selection(generations)
        room = self._limits.max_batch_size
        return Selection(take_pending(active, self._kv, self._kv.num_free, room, None))

    def keeps_out(self, active: list[ActiveRequest]) -> bool:
        """See `CapacityScheduler.keeps_out`."""
        return any(a.state.num_computed >= a.context_tokens for a in active)
