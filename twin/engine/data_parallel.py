"""Data parallelism inside one replica: ranks with a scheduler and a KV cache each.

Ranks of a dense network are independent engine cores behind one front end. Ranks of a network
with experts share these, so they step together: every iteration of a rank's loop launches one
pass, of a real batch or of one dummy token, and no rank launches its k-th before all do (vLLM
agrees on padding by a host all-reduce before each launch). That goes on while any rank has
unfinished requests; every 32nd iteration they find out.

Source: vLLM 0.19.0, `v1/engine/core.py` (`DPEngineCoreProc`), `v1/worker/dp_utils.py`.
"""

from collections.abc import Generator, Sequence
from typing import Any

from hwmodels.host import HostCosts
from twin.engine.clock import Clock, Event
from twin.engine.fast import FastReplica
from twin.engine.in_flight import InFlight, batch_shape
from twin.engine.lockstep import Lockstep, SharedGpus
from twin.engine.rank_balancer import Coordinator, RankBalancer
from twin.engine.recorder import RequestRecorder
from twin.engine.replica import Replica
from twin.engine.serving import OnEnd
from twin.engine.step_recorder import StepRecorder
from twin.errors import ServetwinError
from twin.llm.step_time import StepTime
from twin.request import Request, RequestState
from twin.scheduling.base import Scheduler
from twin.step import BatchShape, StepPlan

SYNC_EVERY_ITERATIONS = 32
"""vLLM's ranks agree this often whether anybody has work left."""

_STUCK_ITERATIONS = 10_000
_NO_STEP = -1


class LockstepRank(Replica):
    """An engine core that launches only together with its peers (see the module).

    Args:
        group: (its rank, what it shares with its peers, who hears its counts).
    """

    def __init__(
        self,
        clock: Clock,
        index: int,
        scheduler: Scheduler,
        host: HostCosts,
        group: tuple[int, Lockstep, Coordinator],
    ) -> None:
        super().__init__(clock, index, scheduler, SharedGpus(), host)
        self._rank, self._lockstep, self._coordinator = group
        self._lockstep.members.append(self)
        self._iteration = 0

    def wake(self) -> None:
        """Leave the rest that idle ranks are in."""
        if self._wake is not None:
            wake, self._wake = self._wake, None
            wake.succeed()

    def submit(self, state: RequestState) -> int:
        """See `Replica.submit`: all ranks wake."""
        index = super().submit(state)
        self._lockstep.wake()
        return index

    def crash(self) -> list[RequestState]:
        """See `Replica.crash`; its peers must crash at the same instant."""
        self._iteration = 0
        self._lockstep.reset()
        return super().crash()

    def _loop(
        self, requests: RequestRecorder, steps: StepRecorder, on_end: OnEnd
    ) -> Generator[Event, None, None]:
        """The loop of vLLM's `DPEngineCoreProc`."""
        clock, scheduler, in_flight = self._clock, self.scheduler, self._in_flight
        idle_iterations = 0
        while True:
            if not (
                self._inbox or in_flight or scheduler.has_requests() or self._lockstep.stepping
            ):
                self._wake = clock.event()
                yield self._wake
            self._drain()
            executed = False
            room = False
            if scheduler.has_requests():
                executed = yield from self._launch_together(requests, steps)
                room = executed and len(in_flight) < scheduler.queue_depth
            if in_flight and not room:
                step = in_flight.popleft()
                yield clock.at(step.out_s(self._host, clock.now))
                self._process(step.plan, requests, on_end)
            report(self, self._rank, self._iteration, self._coordinator, clock.now)
            idle_iterations = 0 if executed else idle_iterations + 1
            if idle_iterations > _STUCK_ITERATIONS and scheduler.has_unfinished():
                raise ServetwinError(
                    f"rank {self.index} cannot schedule any of its requests; "
                    "this is a fault of the simulator, please report it with the scenario"
                )
            if not executed:
                if not (scheduler.has_unfinished() or self._lockstep.stepping):
                    continue
                yield from self._pass(None)
            yield from self._agree()

    def _launch_together(
        self, requests: RequestRecorder, steps: StepRecorder
    ) -> Generator[Event, None, bool]:
        """Schedule; launch with the peers if that gave tokens; return whether it did."""
        now, host = self._clock.now, self._host
        self._show_state()
        plan = self.scheduler.schedule()
        ready_s = now + host.launch_s(len(plan.scheduled))
        if ready_s > now:
            yield self._clock.at(ready_s)
        if not plan.total_tokens:
            if self.scheduler.launches_empty:
                self._in_flight.append(InFlight(plan, ready_s, empty=True))
            return False
        shape = batch_shape(plan)
        if plan.admitted:
            requests.admit([state for state, _ in plan.admitted], now)
        start_s, duration = yield from self._pass(shape)
        end_s = start_s + duration.seconds
        self._in_flight.append(InFlight(plan, end_s, empty=False))
        if self.watch is not None:
            self.watch(self.index, plan)
        self._record(plan, shape, duration, (now, start_s, end_s), steps)
        return True

    def _pass(self, shape: BatchShape | None) -> Generator[Event, Any, tuple[float, StepTime]]:
        """Launch one pass with the peers; return (start, this rank's duration)."""
        meeting, _ = self._lockstep.launches.meet(self._rank, shape)
        shapes = yield meeting
        start_s, times = self._lockstep.launch(shapes, self._clock.now)
        return start_s, times[self._rank]

    def _agree(self) -> Generator[Event, None, None]:
        """Find out, now and then, whether any rank has work left.

        A request that comes between the answer and a rank's hearing of it counts: `stepping` is
        the last to come's to clear.
        """
        self._iteration += 1
        if self._iteration % SYNC_EVERY_ITERATIONS:
            return
        unfinished = self.scheduler.has_unfinished() or bool(self._inbox)
        meeting, answers = self._lockstep.agreements.meet(self._rank, unfinished)
        if answers is not None:
            self._lockstep.stepping = any(answers)
        yield meeting


class ReportingRank(Replica):
    """An engine core of its own pace that tells the coordinator its counts."""

    _rank: int
    _coordinator: Coordinator

    def join(self, rank: int, coordinator: Coordinator) -> None:
        """Be one of the coordinator's ranks; before the rank runs."""
        self._rank, self._coordinator = rank, coordinator

    def _process(self, plan: StepPlan, requests: RequestRecorder, on_end: OnEnd) -> None:
        super()._process(plan, requests, on_end)
        report(self, self._rank, _NO_STEP, self._coordinator, self._clock.now)

    def _drain(self) -> None:
        super()._drain()
        report(self, self._rank, _NO_STEP, self._coordinator, self._clock.now)


class FastReportingRank(ReportingRank, FastReplica):
    """As `ReportingRank`, walking through runs of decode steps at once.

    Counts don't change in such a run, and telling the same counts again changes nothing.
    """


class DataParallelReplica:
    """Ranks behind one front end; takes the place of a `Replica`.

    Args:
        index: its number among the replicas a router chooses from.
        ranks: its engine cores.
        balancer: who chooses among them.
    """

    passive = False

    def __init__(
        self, clock: Clock, index: int, ranks: Sequence[Replica], balancer: RankBalancer
    ) -> None:
        self.index = index
        self.engines: tuple[Replica, ...] = tuple(ranks)
        self._clock = clock
        self._balancer = balancer
        self._rank_of: dict[int, int] = {}

    @property
    def load_requests(self) -> int:
        """Requests running, waiting and not yet seen, over all ranks."""
        return sum(rank.load_requests for rank in self.engines)

    @property
    def load_tokens(self) -> int:
        """See `Replica.load_tokens`, over all ranks."""
        return sum(rank.load_tokens for rank in self.engines)

    def sync(self) -> None:
        """See `ServingInstance.sync`: the clock drives the ranks."""

    def cached_prefix_tokens(self, request: Request) -> int:
        """See `ServingInstance.cached_prefix_tokens`: of the rank that holds most.

        Which rank will get the request is the front end's business, and not known.
        """
        return max(rank.cached_prefix_tokens(request) for rank in self.engines)

    def submit(self, state: RequestState) -> int:
        """Hand a request to a rank now; return the index of its engine core."""
        rank = self._balancer.choose(self._clock.now)
        self._rank_of[state.request.index] = rank
        return self.engines[rank].submit(state)

    def catch_up(self, request: Request) -> None:
        """See `ServingInstance.catch_up`."""
        for rank in self.engines:
            rank.catch_up(request)

    def abort(self, state: RequestState) -> bool:
        """See `ServingInstance.abort`; the front end no longer counts the request at once."""
        rank = self._rank_of.get(state.request.index)
        if rank is None or not self.engines[rank].abort(state):
            return False
        del self._rank_of[state.request.index]
        self._balancer.ended(rank)
        return True

    def crash(self) -> list[RequestState]:
        """See `ServingInstance.crash`: all ranks and the front end, rank by rank."""
        self._rank_of.clear()
        self._balancer.reset(self._clock.now)
        return [state for rank in self.engines for state in rank.crash()]

    def run(
        self, requests: RequestRecorder, steps: StepRecorder, on_end: OnEnd
    ) -> Generator[Event, None, None]:
        """Start the ranks' loops."""

        def ended(request: Request, end_s: float) -> None:
            self._balancer.ended(self._rank_of.pop(request.index))
            on_end(request, end_s)

        for rank in self.engines:
            self._clock.process(rank.run(requests, steps, ended))
        yield self._clock.at(self._clock.now)


def report(engine: Replica, rank: int, step: int, coordinator: Coordinator, now_s: float) -> None:
    """Tell the coordinator what an engine core's scheduler holds."""
    scheduler = engine.scheduler
    used = scheduler.usable_blocks - scheduler.free_blocks
    counts = scheduler.num_waiting, scheduler.num_running
    coordinator.report(rank, step, counts, used / max(1, scheduler.usable_blocks), now_s)
