"""The scheduler of SGLang, pinned to 0.5.23, with and without overlap.

Text only, no speculation, LoRA, pipeline or data-parallel attention, no host cache, no
disaggregation, one full-attention pool. Recorded decisions of the unmodified scheduler are
replayed through it in the golden tests.
"""

from collections.abc import Sequence

from twin.request import Request, RequestState
from twin.scheduling.base import PrefixCounters
from twin.scheduling.sglang.batching import next_batch
from twin.scheduling.sglang.core import SglangCore
from twin.scheduling.sglang.limits import SglangLimits
from twin.scheduling.sglang.quiet_peek import blocks_taken, cached_prefix_keys
from twin.scheduling.sglang.quiet_run import quiet_calls, skip_calls
from twin.scheduling.sglang.results import process
from twin.step import StepOutcome, StepPlan

SGLANG_VERSION = "0.5.23"
"""The version whose decisions these are; others differ in details."""


class SglangScheduler:
    """Implements `twin.scheduling.base.Scheduler`; blocks are pages.

    A batch is either a prefill or a decode: prefills go first, and what is admitted is decided
    by an estimate of how much output the running requests will still generate.

    Args:
        limits: the server's policy.
    """

    launches_empty = False

    def __init__(self, limits: SglangLimits) -> None:
        self.limits = limits
        self.queue_depth = 2 if limits.overlap else 1
        self.core = SglangCore(limits)
        self.prefix: PrefixCounters = self.core.prefix
        self.prefix_key_tokens = 0 if limits.disable_radix_cache else limits.key_tokens
        self._calls = 0

    def fits(self, request: Request) -> bool:
        """Whether `request` can ever be served; see `SglangLimits.fits`."""
        return self.limits.fits(request)

    def add(self, state: RequestState) -> None:
        """See `Scheduler.add`."""
        self.core.add(state)

    def abort(self, state: RequestState) -> bool:
        """See `Scheduler.abort`; a running request still computes until its next result."""
        if state.finish_reason:
            return False
        self.core.give_up(state)
        return True

    def reset(self) -> list[RequestState]:
        """See `Scheduler.reset`."""
        lost = self.core.held()
        self.core = SglangCore(self.limits)
        self.core.prefix = self.prefix
        self._calls = 0
        return lost

    def schedule(self) -> StepPlan:
        """See `Scheduler.schedule`.

        A turn that launches nothing while nothing is on its way is idle; with no request left
        it resets what has been learnt of output lengths.
        """
        core = self.core
        plan = StepPlan(self._calls)
        self._calls += 1
        launch = next_batch(core, plan)
        if launch is not None:
            core.launches.append(launch)
            core.settled = False
        elif not core.launches and not core.unfinished:
            core.ratio.reset()
            core.settled = True
        return plan

    def update(self, plan: StepPlan) -> StepOutcome:
        """See `Scheduler.update`; plans that launched nothing are not processed."""
        core = self.core
        if not plan.total_tokens:
            return StepOutcome()
        outcome = process(core, core.launches.popleft())
        if core.aborted:
            outcome.finished += core.aborted
            core.aborted.clear()
        return outcome

    def quiet_calls(self) -> int:
        """See `twin.scheduling.sglang.quiet_run`."""
        return quiet_calls(self.core)

    def skip_calls(self, calls: int) -> list[int]:
        """See `twin.scheduling.sglang.quiet_run`."""
        self._calls += calls
        return skip_calls(self.core, calls)

    def blocks_taken(self, calls: int) -> int:
        """See `QuietScheduler.blocks_taken`."""
        return blocks_taken(self.core, calls)

    def has_unfinished(self) -> bool:
        """See `Scheduler.has_unfinished`."""
        return self.core.unfinished > 0

    def has_requests(self) -> bool:
        """As `has_unfinished`, or the loop has not had its idle turn since the last work."""
        return self.core.unfinished > 0 or not self.core.settled

    @property
    def running(self) -> list[RequestState]:
        """The decode batch in order."""
        return [job.state for job in self.core.running]

    @property
    def num_running(self) -> int:
        """Requests with KV, those that only wait for their result included."""
        return self.core.unfinished - len(self.core.waiting)

    @property
    def num_waiting(self) -> int:
        """See `Scheduler.num_waiting`."""
        return len(self.core.waiting)

    @property
    def usable_blocks(self) -> int:
        """Pages requests can hold."""
        return self.limits.pool_tokens // self.limits.page_size

    @property
    def free_blocks(self) -> int:
        """Pages that no request holds, cached ones included."""
        return self.core.cache.available // self.limits.page_size

    def cached_prefix_keys(self, keys: Sequence[int], calls: int = 0) -> int:
        """See `QuietScheduler.cached_prefix_keys`."""
        return cached_prefix_keys(self.core, keys, calls)
