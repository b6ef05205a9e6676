"""One engine instance: the loop of an engine core around a scheduler, on simulated time.

The recurrences are those of vLLM's engine core with a queue of `queue_depth` steps in flight (one
a pipeline stage, and one more under asynchronous scheduling). For step k, scheduled at S, with
host times for schedule and launch (h_s), update (h_u) and wake-up (c) and d seconds on the GPU:

    launch L = S + h_s;  GPU start G = max(L, previous E);  end E = G + d
    its tokens leave the engine at V = max(now, E + c) + h_u

An empty batch has E = L and c = 0. While the queue has room and there is work, the next step is
scheduled at L; otherwise the loop waits for the oldest step and goes on at its V. What pipeline
stages do to G and E stands in `twin.engine.gpu`.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence

from simpy import Interrupt
from simpy.events import Process

from hwmodels.host import HostCosts
from twin.engine.clock import Clock, Event
from twin.engine.delivery import DeliveryQueue
from twin.engine.gpu import Gpus
from twin.engine.in_flight import InFlight, batch_shape
from twin.engine.recorder import RequestRecorder
from twin.engine.serving import OnEnd
from twin.engine.step_recorder import StepRecorder
from twin.errors import ServetwinError
from twin.llm.op_sum import SOURCES
from twin.llm.step_time import StepTime
from twin.request import Request, RequestState, Status
from twin.scheduling.base import PrefixCounters, Scheduler
from twin.scheduling.prompt_keys import PromptKeys
from twin.step import BatchShape, StepPlan

NOTHING_SCHEDULED_S = 1e-3
"""vLLM's engine core sleeps this long when it had requests and scheduled nothing."""

_STUCK_ITERATIONS = 10_000

PlanWatcher = Callable[[int, StepPlan], None]
"""Called with (engine core, plan) of each step that runs tokens, as it is launched."""

StateWatcher = Callable[[int, float, Scheduler], None]
"""Called with (engine core, now, its scheduler) before anything changes in that: what the scheduler
shows has stood since the last call."""


class Replica:
    """A scheduler, its GPUs and the loop between them.

    `submit` may be called at any instant; the request is seen by the first `schedule` at or
    after it.
    """

    passive = False

    def __init__(
        self,
        clock: Clock,
        index: int,
        scheduler: Scheduler,
        gpus: Gpus,
        host: HostCosts,
    ) -> None:
        self.index = index
        self.scheduler = scheduler
        self.time_by_source_s = [0.0] * len(SOURCES)
        self.skipped_steps = 0
        self._clock = clock
        self._gpus = gpus
        self._host = host
        self._inbox: list[RequestState] = []
        self._wake: Event | None = None
        self.delivery: DeliveryQueue | None = None
        """The server's process, where it may limit; None: tokens reach their clients at once."""
        self._in_flight: deque[InFlight] = deque()
        self._process_event: Process | None = None
        self._restarting = False
        self._served: tuple[RequestRecorder, StepRecorder, OnEnd] | None = None
        self.prompt_keys = PromptKeys()
        """Who works out prompts' keys; replicas may share it."""
        self.watch: PlanWatcher | None = None
        """Who is shown every plan; only an engine that takes every step shows them all."""
        self.look: StateWatcher | None = None
        """Who is shown every state; that goes with an engine that takes every step, too."""
        self._held_tokens = 0

    @property
    def engines(self) -> "tuple[Replica, ...]":
        """The engine cores behind it: itself."""
        return (self,)

    @property
    def load_requests(self) -> int:
        """Requests running, waiting and not yet seen."""
        return self.scheduler.num_running + self.scheduler.num_waiting + len(self._inbox)

    @property
    def load_tokens(self) -> int:
        """Tokens of their prompts and of their answers that have left the engine."""
        return self._held_tokens

    @property
    def waiting_requests(self) -> int:
        """Requests waiting and not yet seen."""
        return self.scheduler.num_waiting + len(self._inbox)

    @property
    def used_blocks(self) -> int:
        """KV blocks that requests hold."""
        return self.scheduler.usable_blocks - self.scheduler.free_blocks

    def sync(self) -> None:
        """See `ServingInstance.sync`: the clock drives it."""

    def cached_prefix_tokens(self, request: Request) -> int:
        """See `ServingInstance.cached_prefix_tokens`."""
        size = self.scheduler.prefix_key_tokens
        keys = self.prompt_keys.of(request, size) if size else ()
        return self._cached_keys(keys) * size if keys else 0

    def _cached_keys(self, keys: Sequence[int]) -> int:
        return self.scheduler.cached_prefix_keys(keys)

    def submit(self, state: RequestState) -> int:
        """Hand a request to this replica now; return the index of the engine core that has it."""
        self._inbox.append(state)
        self._held_tokens += state.request.prompt_tokens
        if self._wake is not None:
            wake, self._wake = self._wake, None
            wake.succeed()
        return self.index

    def run(
        self, requests: RequestRecorder, steps: StepRecorder, on_end: OnEnd
    ) -> Generator[Event, None, None]:
        """The engine core's loop; a simpy process that never returns."""
        self._process_event, self._served = self._clock.active_process, (requests, steps, on_end)
        while True:
            try:
                yield from self._loop(requests, steps, on_end)
            except Interrupt:  # a crash
                self._restarting = False

    def catch_up(self, request: Request) -> None:
        """See `ServingInstance.catch_up`: what happens is written down at once."""

    def abort(self, state: RequestState) -> bool:
        """See `ServingInstance.abort`: what begins at this instant or later happens without it."""
        if state in self._inbox:
            self._inbox.remove(state)
            self.scheduler.add(state)
        self._show_state()
        held_tokens = state.num_tokens
        if not self.scheduler.abort(state):
            return False
        self._held_tokens -= held_tokens
        return True

    def crash(self) -> list[RequestState]:
        """See `ServingInstance.crash`: of steps launched before, only the record stays."""
        self._show_state()
        lost = [*self.scheduler.reset(), *self._inbox]
        for state in lost:
            state.status, state.finish_reason = Status.FINISHED, "lost"
        self._inbox.clear()
        self._held_tokens = 0
        self._in_flight.clear()
        self._gpus.reset()
        self._wake = None
        if self.delivery is not None:
            self.delivery.reset()
        if self._process_event is not None and not self._restarting:
            self._restarting = True
            self._process_event.interrupt()
        return lost

    def _loop(
        self, requests: RequestRecorder, steps: StepRecorder, on_end: OnEnd
    ) -> Generator[Event, None, None]:
        clock, scheduler, in_flight = self._clock, self.scheduler, self._in_flight
        depth, empty_counts = scheduler.queue_depth, scheduler.launches_empty
        idle_iterations = 0
        while True:
            if not self._inbox and not in_flight and not scheduler.has_requests():
                self._wake = clock.event()
                yield self._wake
            hurry = self._hurry(requests, steps)
            if hurry is not None:
                yield from hurry
                continue
            self._drain()
            now = clock.now
            executed = False
            if scheduler.has_requests():
                executed, launched_s = self._launch(now, requests, steps)
                room = len(in_flight) < depth
                if room and (executed or (empty_counts and scheduler.has_unfinished())):
                    yield clock.at(launched_s if executed else launched_s + NOTHING_SCHEDULED_S)
                    continue
                now = launched_s
            if in_flight:
                step = in_flight.popleft()
                yield clock.at(step.out_s(self._host, now))
                self._process(step.plan, requests, on_end)
            if executed:
                idle_iterations = 0
            elif scheduler.has_unfinished():
                idle_iterations += 1
                if idle_iterations > _STUCK_ITERATIONS:
                    raise ServetwinError(
                        f"replica {self.index} cannot schedule any of its requests; "
                        "this is a fault of the simulator, please report it with the scenario"
                    )
                yield clock.at(clock.now + NOTHING_SCHEDULED_S)

    def _hurry(
        self,
        requests: RequestRecorder,  # noqa: ARG002
        steps: StepRecorder,  # noqa: ARG002
    ) -> Generator[Event, None, None] | None:
        """Return a quicker way through the next iterations; None: there is none.

        The plain engine knows none; `twin.engine.fast` does.
        """
        return None

    def settle(
        self,
        horizon_s: float,  # noqa: ARG002
        requests: RequestRecorder,  # noqa: ARG002
        steps: StepRecorder,  # noqa: ARG002
    ) -> float:
        """See `ServingCore.settle`."""
        return self._clock.now

    @property
    def prefix(self) -> PrefixCounters:
        """Counters of its prefix cache."""
        return self.scheduler.prefix

    @property
    def usable_blocks(self) -> int:
        """KV blocks that requests can hold."""
        return self.scheduler.usable_blocks

    def _drain(self) -> None:
        for state in self._inbox:
            self.scheduler.add(state)
        self._inbox.clear()

    def _launch(
        self, now: float, requests: RequestRecorder, steps: StepRecorder
    ) -> tuple[bool, float]:
        """Schedule a step and put it on the GPU; return (it runs tokens, launch time)."""
        self._show_state()
        plan = self.scheduler.schedule()
        host = self._host
        launched_s = now + host.launch_s(len(plan.scheduled))
        if not plan.total_tokens:
            if self.scheduler.launches_empty:
                self._in_flight.append(InFlight(plan, launched_s, empty=True))
            return False, launched_s
        shape = batch_shape(plan)
        if self.watch is not None:
            self.watch(self.index, plan)
        start_s, end_s, duration = self._gpus.run(shape, launched_s, plan.index)
        self._in_flight.append(InFlight(plan, end_s, empty=False))
        if plan.admitted:
            requests.admit([state for state, _ in plan.admitted], now)
        self._record(plan, shape, duration, (now, start_s, end_s), steps)
        return True, launched_s

    def _show_state(self) -> None:
        if self.look is not None:
            self.look(self.index, self._clock.now, self.scheduler)

    def _record(
        self,
        plan: StepPlan,
        shape: BatchShape,
        duration: StepTime,
        times_s: tuple[float, float, float],
        steps: StepRecorder,
    ) -> None:
        scheduler = self.scheduler
        counts = (
            self.index,
            plan.total_tokens - shape.decode_seqs,
            shape.decode_seqs,
            scheduler.num_running,
            scheduler.num_waiting,
            scheduler.usable_blocks - scheduler.free_blocks,
            len(plan.preempted),
            duration.bound,
        )
        steps.record(*times_s, counts)
        if self._gpus.stages > 1:
            steps.keep_busy(duration.seconds)
        self._count_sources(duration.by_source)

    def _count_sources(self, by_source: Sequence[float]) -> None:
        """Count GPU seconds by how their duration was obtained."""
        total = self.time_by_source_s
        for index, seconds in enumerate(by_source):
            if seconds:
                total[index] += seconds

    def _process(self, plan: StepPlan, requests: RequestRecorder, on_end: OnEnd) -> None:
        now = self._clock.now
        self._show_state()
        outcome = self.scheduler.update(plan)
        self._held_tokens += len(outcome.delivered)
        for state in outcome.finished:
            self._held_tokens -= state.num_tokens
        if self.delivery is not None:
            self.delivery.deliver(outcome, now, requests, on_end)
            return
        requests.deliver(outcome.delivered, now)
        if outcome.finished:
            requests.finish(outcome.finished, now)
            for state in outcome.finished:
                on_end(state.request, now)
