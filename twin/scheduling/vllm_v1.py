"""The scheduler of vLLM V1, pinned to 0.33.0: synchronous, asynchronous, pipelined.

Text only, no speculation, no LoRA, no connector, one full-attention KV group. Recorded decisions
of the unmodified scheduler are replayed through it in the golden tests.
"""

from collections.abc import Callable, Sequence

from twin.paging.eviction.setup import no_clock
from twin.request import Request, RequestState, Status
from twin.scheduling.base import PrefixCounters
from twin.scheduling.core import EngineCore
from twin.scheduling.limits import SchedulerLimits
from twin.scheduling.outputs import process_in_order, process_late
from twin.scheduling.quiet_peek import blocks_taken, cached_prefix_keys
from twin.scheduling.quiet_run import quiet_calls, skip_calls
from twin.scheduling.running_pass import schedule_running
from twin.scheduling.waiting_pass import admit_waiting
from twin.step import StepOutcome, StepPlan

VLLM_VERSION = "0.33.0"
"""The version whose decisions these are; others differ in details."""

_NO_CAP = 2**62


class VllmV1Scheduler:
    """Implements `twin.scheduling.base.Scheduler`.

    There are no phases: every step moves each request's computed tokens toward its known ones,
    running requests first, waiting ones with what is left of the budget.

    Args:
        limits: the engine's policy.
        clock: simulated seconds; decisions but those of eviction by time never look at it.

    Attributes:
        core: its state.
        next_call: number of the next schedule call, from 0.
    """

    launches_empty = True

    def __init__(self, limits: SchedulerLimits, clock: Callable[[], float] = no_clock) -> None:
        self.limits = limits
        self.queue_depth = limits.queue_depth
        self._clock = clock
        self.core = EngineCore(limits, clock)
        self.prefix: PrefixCounters = self.core.prefix
        self.prefix_key_tokens = limits.block_size if limits.enable_prefix_caching else 0
        self.next_call = 0

    def fits(self, request: Request) -> bool:
        """Whether `request` can ever be served; see `SchedulerLimits.fits`."""
        return self.limits.fits(request)

    def add(self, state: RequestState) -> None:
        """See `Scheduler.add`."""
        self.core.add(state)

    def schedule(self) -> StepPlan:
        """See `Scheduler.schedule`."""
        core, limits = self.core, self.limits
        plan = StepPlan(self.next_call)
        self.next_call += 1
        cap = _NO_CAP
        if limits.long_prefill_token_threshold and len(core.running) + len(core.waiting) > 1:
            # The cap keeps a long prompt from starving others; a lone request starves nobody.
            cap = limits.long_prefill_token_threshold
        budget = schedule_running(core, plan, cap)
        if budget > 0 and not plan.preempted and len(core.waiting):
            budget = admit_waiting(core, plan, cap, budget)
        plan.total_tokens = limits.max_num_batched_tokens - budget
        if limits.overlapping:
            plan.epochs = [state.preemptions for state, _ in plan.scheduled]
        plan.finished_sent, core.unsent = core.unsent, []
        return plan

    def update(self, plan: StepPlan) -> StepOutcome:
        """See `Scheduler.update`."""
        if self.limits.overlapping:
            return process_late(self.core, plan)
        return process_in_order(self.core, plan)

    def abort(self, state: RequestState) -> bool:
        """See `Scheduler.abort`: it ends at once."""
        if state.status is Status.FINISHED:
            return False
        self.core.abort(state)
        return True

    def reset(self) -> list[RequestState]:
        """See `Scheduler.reset`."""
        lost = [*self.core.running, *self.core.waiting]
        self.core = EngineCore(self.limits, self._clock)
        self.core.prefix = self.prefix
        self.next_call = 0
        return lost

    def quiet_calls(self) -> int:
        """See `twin.scheduling.quiet_run`; 0 in a pipeline."""
        if self.limits.pipeline_stages > 1:
            return 0
        return quiet_calls(self.core)

    def skip_calls(self, calls: int) -> list[int]:
        """See `twin.scheduling.quiet_run`."""
        self.next_call += calls
        return skip_calls(self.core, calls)

    def blocks_taken(self, calls: int) -> int:
        """Return the KV blocks that so many quiet calls from now on take."""
        return blocks_taken(self.core, calls)

    def cached_prefix_keys(self, keys: Sequence[int], calls: int = 0) -> int:
        """See `Scheduler.cached_prefix_keys`; `calls`: after so many quiet calls from now on."""
        return cached_prefix_keys(self.core, keys, calls)

    def has_unfinished(self) -> bool:
        """See `Scheduler.has_unfinished`."""
        return bool(self.core.running) or len(self.core.waiting) > 0

    def has_requests(self) -> bool:
        """See `Scheduler.has_requests`."""
        return bool(self.core.unsent) or self.has_unfinished()

    @property
    def running(self) -> list[RequestState]:
        """The running requests in order; to read, not to change."""
        return self.core.running

    @property
    def num_running(self) -> int:
        """See `Scheduler.num_running`."""
        return len(self.core.running)

    @property
    def num_waiting(self) -> int:
        """See `Scheduler.num_waiting`."""
        return len(self.core.waiting)

    @property
    def usable_blocks(self) -> int:
        """See `Scheduler.usable_blocks`."""
        return self.core.pool.usable

    @property
    def free_blocks(self) -> int:
        """See `Scheduler.free_blocks`."""
        return self.core.pool.num_free
