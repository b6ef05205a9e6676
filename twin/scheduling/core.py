"""`EngineCore`: the mutable state that the passes of one scheduler share."""

from collections.abc import Callable

from twin.naming import lookup
from twin.paging.block_pool import BlockPool
from twin.paging.eviction import EVICTION
from twin.paging.eviction.order import EvictionOrder
from twin.paging.eviction.setup import EvictionSetup, no_clock
from twin.request import Request, RequestState, Status
from twin.scheduling.base import PrefixCounters
from twin.scheduling.limits import SchedulerLimits
from twin.scheduling.queues import QUEUES

# Content keys are not negative, so keys that no other request shares are negative; a request has
# fewer than 2**24 blocks (see `twin.request`).
_INDEX_BITS = 24


class EngineCore:
    """Who runs, who waits and who holds which block.

    Args:
        limits: the policy.
        clock: simulated seconds, for eviction by time.

    Attributes:
        limits: the policy.
        pool: KV blocks.
        running: requests that hold blocks, in order of admission.
        waiting: requests that hold none.
        unsent: finished requests that the worker has not been told of.
        prefix: prefix-cache counters.
    """

    __slots__ = ("limits", "pool", "prefix", "running", "unsent", "waiting")

    def __init__(self, limits: SchedulerLimits, clock: Callable[[], float] = no_clock) -> None:
        self.limits = limits
        self.pool = BlockPool(
            limits.num_gpu_blocks,
            caching=limits.enable_prefix_caching,
            eviction=_eviction_order(limits, clock),
        )
        self.running: list[RequestState] = []
        self.waiting = lookup(QUEUES, limits.scheduling_policy, "scheduling policy")()
        self.unsent: list[RequestState] = []
        self.prefix = PrefixCounters()

    def add(self, state: RequestState) -> None:
        """Take a new request into the waiting queue."""
        self.prepare(state)
        self.waiting.add(state)

    def prepare(self, state: RequestState) -> None:
        """Work out where a new request ends and how its blocks are found."""
        limits, request = self.limits, state.request
        state.output_limit = limits.output_limit(request)
        if limits.enable_prefix_caching and not state.block_keys:
            tokens = request.prompt_tokens + state.output_limit
            state.block_keys = _block_keys(request, limits.block_size, tokens)

    def preempt(self, state: RequestState) -> None:
        """Take all blocks from a request already out of `running` and queue it again.

        Its generated tokens stay, to be computed again as a prompt. What it has in flight is
        stale from here on: the plan's epoch no longer equals `preemptions`.
        """
        self.pool.free(state.blocks)
        state.blocks = []
        state.num_cached_blocks = 0
        state.num_computed = 0
        state.placeholders = 0
        state.status = Status.PREEMPTED
        state.preemptions += 1
        self.waiting.put_back(state)

    def finish(self, state: RequestState) -> None:
        """End a request and free its blocks; the caller takes it out of its list or queue."""
        stop = state.request.stop_after_tokens
        self._end(state, "stop" if state.num_output == stop else "length")

    def abort(self, state: RequestState) -> None:
        """End a request for its client's sake, with its blocks free at once.

        The worker hears of it with the next plan; tokens in flight are discarded on arrival,
        since they lie beyond what is left as its limit. (vLLM 0.33.0, `finish_requests`.)
        """
        if state.status is Status.RUNNING:
            self.running.remove(state)
        else:
            self.waiting.remove(state)
        state.output_limit = state.num_output
        self._end(state, "abort")

    def _end(self, state: RequestState, reason: str) -> None:
        state.finish_reason = reason
        state.status = Status.FINISHED
        self.pool.free(state.blocks)
        state.blocks = []
        state.num_cached_blocks = 0
        state.placeholders = 0
        self.unsent.append(state)

    def cache_up_to(self, state: RequestState, tokens: int) -> None:
        """Make the full blocks among the first `tokens` tokens of a request findable."""
        full = tokens // self.limits.block_size
        if full > state.num_cached_blocks:
            new = range(state.num_cached_blocks, full)
            self.pool.cache_full(state.blocks, state.block_keys, new)
            state.num_cached_blocks = full


def _eviction_order(limits: SchedulerLimits, clock: Callable[[], float]) -> EvictionOrder:
    build = lookup(EVICTION, limits.eviction, "eviction order")
    parity_blocks = limits.attention_parity_tokens / limits.block_size
    return build(EvictionSetup(limits.num_gpu_blocks, clock, limits.eviction_ttl_s, parity_blocks))


def _block_keys(request: Request, block_size: int, tokens: int) -> list[int]:
    """Return a key for each full block; a request without content can hit only its own."""
    if request.content is not None:
        return request.content.block_keys(block_size, tokens)
    first = request.index << _INDEX_BITS
    return [~(first + index) for index in range(tokens // block_size)]
