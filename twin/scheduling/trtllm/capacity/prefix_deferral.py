"""Prefix deferral: a context waits for another one that computes what it could reuse."""

from collections.abc import Iterable

from twin.scheduling.trtllm.active import ActiveRequest
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.limits import TrtllmLimits


class PrefixDeferral:
    """The block keys claimed in one capacity pass.

    The first key of a context that is not in the tree yet stands for what it will compute. A
    half-done context claims its key whatever becomes of it in this pass. With overlap the blocks
    of a context enter the tree after the schedule that follows its last chunk, so a deferral of
    one iteration does not bring the hit yet. (TensorRT-LLM, `capacityScheduler.cpp`.)

    Args:
        limits: the policy.
        kv: the blocks.
        active: all active requests.
    """

    __slots__ = ("_claimed", "_kv", "_on")

    def __init__(self, limits: TrtllmLimits, kv: KvCache, active: Iterable[ActiveRequest]) -> None:
        self._kv = kv
        self._on = limits.enable_block_reuse and limits.enable_prefix_aware_scheduling
        self._claimed: set[int] = set()
        if self._on:
            for request in active:
                if request.is_context and not request.is_first_chunk:
                    self.claim(request)

    def defers(self, request: ActiveRequest) -> bool:
        """Whether a context is skipped in this iteration; it does not stop those behind it."""
        if not self._on or not self._claimed or not request.is_first_chunk:
            return False
        return self._kv.first_new_key(request.state, request.context_tokens) in self._claimed

    def claim(self, request: ActiveRequest) -> None:
        """Note what a context that was taken will compute."""
        if self._on:
            key = self._kv.first_new_key(request.state, request.context_tokens)
            if key is not None:
                self._claimed.add(key)
