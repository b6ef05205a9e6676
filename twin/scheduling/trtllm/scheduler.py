"""The scheduler of TensorRT-LLM's PyTorch backend, with and without the overlap executor.

Text only, one pipeline stage, no attention data parallelism, no speculation, no LoRA, beam 1, one
attention window, KV cache manager V1. The decisions of one iteration are: fetch, capacity,
micro-batch, batch wait, preparation (blocks).
"""

from collections.abc import Callable, Sequence

from twin.request import Request, RequestState, Status
from twin.scheduling.base import PrefixCounters
from twin.scheduling.queues import QUEUES
from twin.scheduling.trtllm.active import ActiveRequest
from twin.scheduling.trtllm.batch_wait import BatchWait
from twin.scheduling.trtllm.capacity import CAPACITY_SCHEDULERS
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.limits import TrtllmLimits
from twin.scheduling.trtllm.micro_batch import MicroBatch, micro_batch
from twin.scheduling.trtllm.preparation import prepare
from twin.scheduling.trtllm.quiet_peek import blocks_taken, cached_prefix_keys
from twin.scheduling.trtllm.quiet_run import generations_of, quiet_calls, skip_calls
from twin.step import StepOutcome, StepPlan

_INDEX_BITS = 24


class TrtllmScheduler:
    """Implements `twin.scheduling.base.Scheduler`.

    With overlap, iteration k decides and launches step k and then processes step k-1. So a
    request whose last token comes from step k ends after the launch of step k+1; the next one is
    fetched for step k+3 at the earliest if its client needs any time at all.

    Args:
        limits: the engine's policy.

    Attributes:
        kv: the KV blocks.
        batch_wait: the counter that holds contexts back.
        active: the fetched requests in order of arrival; to read, not to change.
    """

    launches_empty = False

    def __init__(self, limits: TrtllmLimits) -> None:
        self.limits = limits
        self.queue_depth = 2 if limits.overlap else 1
        self.prefix = PrefixCounters()
        self.prefix_key_tokens = limits.tokens_per_block if limits.enable_block_reuse else 0
        self._start()

    def _start(self) -> None:
        limits = self.limits
        self.kv = KvCache(limits)
        self.batch_wait = BatchWait(limits)
        self.active: list[ActiveRequest] = []
        self._capacity = CAPACITY_SCHEDULERS[limits.capacity_scheduler_policy](limits, self.kv)
        self._waiting = QUEUES[limits.waiting_queue]()
        self._paused: list[ActiveRequest] = []
        self._cancelled: list[RequestState] = []
        self._holding = 0
        self._flying = 0
        self._calls = 0

    def fits(self, request: Request) -> bool:
        """Whether `request` can ever be served; see `TrtllmLimits.fits`."""
        return self.limits.fits(request)

    def add(self, state: RequestState) -> None:
        """See `Scheduler.add`."""
        limits, request = self.limits, state.request
        state.output_limit = limits.output_limit(request)
        if limits.enable_block_reuse and not state.block_keys:
            # With overlap one token past the last may be computed and stored.
            tokens = request.prompt_tokens + state.output_limit + 1
            state.block_keys = _block_keys(request, limits.tokens_per_block, tokens)
        self._waiting.add(state)

    def abort(self, state: RequestState) -> bool:
        """See `Scheduler.abort`; a fetched request ends when the next step is processed.

        (TensorRT-LLM, `_handle_canceled_requests`.)
        """
        if state.finish_reason:
            return False
        state.finish_reason = "abort"
        if any(request.state is state for request in self.active):
            state.output_limit = state.num_output + 1  # whoever looks ahead sees its end
            self._cancelled.append(state)
        else:
            self._waiting.remove(state)
            state.status = Status.FINISHED
        return True

    def reset(self) -> list[RequestState]:
        """See `Scheduler.reset`."""
        states = [*(request.state for request in self.active), *self._waiting]
        self._start()
        return [state for state in states if not state.finish_reason]

    def schedule(self) -> StepPlan:
        """See `Scheduler.schedule`."""
        if self._cancelled and not self._flying:
            self._end_cancelled(StepOutcome())
        plan = StepPlan(self._calls)
        self._calls += 1
        self._fold_paused()
        self._fetch()
        selection = self._capacity.select(self.active)
        batch = micro_batch(selection.taken, self.limits, self.kv)
        self._wait_for_a_larger_batch(batch)
        for request in selection.paused:
            self._pause(request)
            plan.preempted.append(request.state)
        self._holding += prepare(batch, plan, self.limits, self.kv, self.prefix)
        self._flying += plan.total_tokens > 0
        return plan

    def _fold_paused(self) -> None:
        """What a paused request had generated, its token in flight included, becomes prompt."""
        for request in self._paused:
            request.context_tokens = request.state.num_tokens
        self._paused.clear()

    def _fetch(self) -> None:
        """Move requests from the queue to the active ones, of which ending ones still count."""
        waiting, active, most = self._waiting, self.active, self.limits.max_batch_size
        while len(waiting) and len(active) < most:
            state = waiting.pop()
            request = state.request
            active.append(
                ActiveRequest(
                    state,
                    request.prompt_tokens,
                    self.limits.foreseen_output(request),
                    self.limits.blocks_to_completion(request),
                )
            )

    def _wait_for_a_larger_batch(self, batch: MicroBatch) -> None:
        if (
            self.batch_wait.is_on
            and batch.contexts
            and batch.generations
            and self.batch_wait.holds_back(batch.context_cost, len(batch.generations))
        ):
            batch.contexts.clear()

    def _pause(self, request: ActiveRequest) -> None:
        """Free the blocks of a request at once; it keeps its place and starts over as context."""
        state = request.state
        self.kv.release(state)
        self._holding -= 1
        state.num_computed = 0
        state.placeholders = 0
        state.status = Status.PREEMPTED
        state.preemptions += 1
        self._paused.append(request)

    def update(self, plan: StepPlan) -> StepOutcome:
        """See `Scheduler.update`.

        A request paused meanwhile keeps the token that was in flight; one that ended by a stop
        token meanwhile does not.
        """
        self._flying -= plan.total_tokens > 0
        outcome = StepOutcome()
        deliver: Callable[[RequestState], None] = outcome.delivered.append
        block_size = self.limits.tokens_per_block
        storing = self.limits.enable_block_reuse
        for state in plan.samples:
            status = state.status
            if status is Status.FINISHED:
                outcome.discarded.append(state)
                continue
            output = state.num_output = state.num_output + 1
            deliver(state)
            if status is Status.PREEMPTED:
                outcome.stale.append(state)
            else:
                state.placeholders -= 1
                if storing:
                    known = state.request.prompt_tokens + output - 1
                    if known // block_size > state.num_cached_blocks:
                        self.kv.store(state, known)
            if output >= state.output_limit:
                self._finish(state, outcome)
        if self._cancelled:
            self._end_cancelled(outcome)
        elif outcome.finished:
            self._drop_finished()
        return outcome

    def _finish(self, state: RequestState, outcome: StepOutcome) -> None:
        if state.status is Status.PREEMPTED:
            outcome.finished_waiting.append(state)
        stop = state.request.stop_after_tokens
        state.finish_reason = "stop" if state.num_output == stop else "length"
        self._leave(state)
        outcome.finished.append(state)

    def _leave(self, state: RequestState) -> None:
        if state.status is Status.RUNNING:
            self.kv.release(state)
            self._holding -= 1
        state.status = Status.FINISHED
        state.placeholders = 0

    def _drop_finished(self) -> None:
        self.active[:] = [a for a in self.active if a.state.status is not Status.FINISHED]

    def _end_cancelled(self, outcome: StepOutcome) -> None:
        """End the requests given up; what this step brought them is for nobody."""
        cancelled, self._cancelled = self._cancelled, []
        for state in cancelled:
            state.finish_reason = "abort"
            self._leave(state)
        outcome.discarded += [state for state in outcome.delivered if state in cancelled]
        for states in (outcome.delivered, outcome.stale, outcome.finished):
            states[:] = [state for state in states if state not in cancelled]
        outcome.finished_waiting[:] = [s for s in outcome.finished_waiting if s not in cancelled]
        self._drop_finished()

    def quiet_calls(self) -> int:
        """See `twin.scheduling.trtllm.quiet_run`."""
        fetches = len(self._waiting) and len(self.active) < self.limits.max_batch_size
        if self._cancelled or self._paused or fetches or not self._capacity.keeps_out(self.active):
            return 0
        return quiet_calls(self.running, self.limits, self.kv)

    def skip_calls(self, calls: int) -> list[int]:
        """See `twin.scheduling.trtllm.quiet_run`."""
        self._calls += calls
        return skip_calls(self.running, self.limits, self.kv, calls)

    def blocks_taken(self, calls: int) -> int:
        """See `QuietScheduler.blocks_taken`."""
        return blocks_taken(self.running, self.kv, calls)

    def has_unfinished(self) -> bool:
        """See `Scheduler.has_unfinished`."""
        return bool(self.active) or len(self._waiting) > 0

    def has_requests(self) -> bool:
        """See `Scheduler.has_requests`: nobody has to be told of finished requests."""
        return self.has_unfinished()

    @property
    def running(self) -> list[RequestState]:
        """The generations in order of arrival."""
        return generations_of(self.active)

    @property
    def num_running(self) -> int:
        """Requests that hold blocks."""
        return self._holding

    @property
    def num_waiting(self) -> int:
        """Requests that hold none: not fetched, not started, or paused."""
        return len(self._waiting) + len(self.active) - self._holding

    @property
    def usable_blocks(self) -> int:
        """See `Scheduler.usable_blocks`."""
        return self.kv.usable

    @property
    def free_blocks(self) -> int:
        """See `Scheduler.free_blocks`."""
        return self.kv.num_free

    def cached_prefix_keys(self, keys: Sequence[int], calls: int = 0) -> int:
        """See `QuietScheduler.cached_prefix_keys`; full blocks only."""
        return cached_prefix_keys(self.running, self.kv, keys, calls)


def _block_keys(request: Request, block_size: int, tokens: int) -> list[int]:
    """Return a key for each full block; a request without content can hit only its own."""
    if request.content is not None:
        return request.content.block_keys(block_size, tokens)
    first = request.index << _INDEX_BITS
    return [~(first + index) for index in range(tokens // block_size)]
