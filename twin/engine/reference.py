"""The loop of a run: a workload sends requests through a router to replicas and hears of ends.

With plain replicas, one time-out a step, it is the oracle of every faster engine.
"""

import math
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from hwmodels.host import HostCosts
from twin.engine.clock import URGENT, Clock, Event
from twin.engine.cluster.agenda import Agenda
from twin.engine.cluster.dispatcher import Dispatcher
from twin.engine.cluster.membership import Membership
from twin.engine.cluster.pool import Pool
from twin.engine.recorder import RequestRecorder
from twin.engine.result import FAILED, FINISHED, REJECTED
from twin.engine.routers import Router
from twin.engine.step_recorder import StepRecorder
from twin.request import Request, RequestState
from twin.workload.source import RequestSource

Progress = Callable[[int, int | None], None]
"""Called with (requests ended, requests expected or None)."""


class Clients(Protocol):
    """Who stands between the workload and the servers."""

    def expected(self, request: Request) -> None:
        """A request will be sent at its `arrival_s`, now or later; it has a row by now."""
        ...

    def sends(self, request: Request) -> bool:
        """A request reaches the servers now; False: nobody wants it any more, and it is over."""
        ...

    def ended(self, request: Request, end_s: float, outcome: int) -> bool:
        """A request ended at `end_s` as `outcome` says; return whether the workload hears of it.

        If not, the clients call `ReferenceEngine.expect` or `send` for the next attempt before
        they return, and `conclude` when there is none.
        """
        ...


class ReferenceEngine:
    """Replicas behind a router, fed by a workload that hears of completions.

    Args:
        clock: the simpy environment of this run.
        pools: the replicas, by kind.
        router: chooses a replica for each request.
        source: the workload, spent by the run.
        host: host costs; `api_s` passes between a request's arrival and the router.
        stride: of steps and gaps one is kept of so many; 0: none.

    Attributes:
        api_s: see above.
        requests, steps: what happened.
        agenda: what is planned to happen to the cluster.
        membership: the replicas.
        dispatcher: sends requests to them.
        clients: who hears of ends before the workload does; None: nobody.
    """

    def __init__(
        self,
        clock: Clock,
        pools: Sequence[Pool],
        router: Router,
        source: RequestSource,
        host: HostCosts,
        stride: int = 1,
    ) -> None:
        self.requests = RequestRecorder(stride)
        self.steps = StepRecorder(stride)
        self.agenda = Agenda(clock)
        records = self.requests, self.steps
        self.membership = Membership(clock, self.agenda, pools, records, self.finish)
        self.dispatcher = Dispatcher(clock, router, self.membership, self.requests, self._rejected)
        self.clients: Clients | None = None
        self._clock = clock
        self._source = source
        self.api_s = host.api_s
        self._open = self._ended = 0
        self._progress: Progress | None = None

    @property
    def now_s(self) -> float:
        """The present instant; after the run the time of the last event."""
        return self._clock.now

    def run(self, horizon_s: float | None = None, progress: Progress | None = None) -> None:
        """Run until nothing is left to do, or to `horizon_s`."""
        self._progress = progress
        self._clock.process(self._arrivals(self._source.start()))
        self._clock.run(until=horizon_s)

    def _arrivals(self, requests: Sequence[Request]) -> Generator[Event, None, None]:
        self.requests.arrive_all(requests)
        self._open += len(requests)
        if self.clients is not None:
            for request in requests:
                self.clients.expected(request)
        clock = self._clock
        for request in requests:
            at_s = request.arrival_s + self.api_s
            if at_s > clock.now and not clock.jump(at_s):
                yield clock.at(at_s, URGENT)
            self._arrives(request)

    def expect(self, request: Request) -> None:
        """Send a request through the router once it has arrived, API time included."""
        self.open(request)
        at_s = request.arrival_s + self.api_s
        if at_s <= self._clock.now:
            self.dispatcher.put(request)
        else:
            self._clock.call_at(at_s, lambda: self._arrives(request))

    def _arrives(self, request: Request) -> None:
        if self.clients is None or self.clients.sends(request):
            self.dispatcher.send((request,))

    def send(self, request: Request) -> None:
        """Send a request through the router now."""
        self.open(request)
        self.dispatcher.send((request,))

    def abort(self, request: Request) -> bool:
        """Take a request back from wherever it is; False: it has ended, or is not there yet.

        Nobody hears of an end; its row stays as unfinished.
        """
        state = self.requests.states[request.index]
        if state is None:
            return self.dispatcher.take_back(request)
        member = self.membership.of_core(self.requests.replica[request.index])
        if not member.abort(state):
            return False
        self.membership.let_go(member)
        return True

    def requeue(self, lost: Sequence[RequestState]) -> None:
        """Send requests of a lost replica through the router again, to begin anew."""
        for state in lost:
            self.requests.requeue(state.request)
        self.dispatcher.send([state.request for state in lost])

    def first_token_s(self, row: int) -> float:
        """Return when a request's first token came, as far as it came before now; else NaN."""
        requests = self.requests
        if math.isnan(requests.first_token_s[row]) and requests.replica[row] >= 0:
            member = self.membership.of_core(requests.replica[row])
            if member.is_passive or not math.isnan(requests.scheduled_s[row]):
                member.catch_up(requests.requests[row])
        return requests.first_token_s[row]

    def takes(self, request: Request) -> bool:
        """Whether any server would take a request."""
        return any(pool.accepts(request) for pool in self.membership.pools)

    def fail(self, request: Request) -> None:
        """End a request that has lost its replica."""
        now = self._clock.now
        self.requests.fail(request, now)
        self._ends(request, now, FAILED)
        self.dispatcher.send(())

    def conclude(self, request: Request, end_s: float, outcome: int) -> None:
        """Tell the workload that a request ended for good."""
        self._ended += 1
        if self._progress is not None:
            self._progress(self._ended, self._source.expected_requests)
        refused = outcome != FINISHED
        for follower in self._source.on_end(request, end_s, rejected=refused):
            self.expect(follower)

    def open(self, request: Request) -> None:
        """Give a request its row; who opens it sends it."""
        self._open += 1
        self.requests.arrive(request)
        if self.clients is not None:
            self.clients.expected(request)

    def close(self) -> None:
        """A request that was opened is over, and nobody has to be told of it."""
        self._open -= 1
        if not self._open:
            self.agenda.close()

    def finish(self, request: Request, end_s: float) -> None:
        """End a request that got its whole answer."""
        self._ends(request, end_s, FINISHED)
        self.dispatcher.send(())

    def _rejected(self, request: Request) -> None:
        self._ends(request, self._clock.now, REJECTED)

    def _ends(self, request: Request, end_s: float, outcome: int) -> None:
        if self.clients is None or self.clients.ended(request, end_s, outcome):
            self.conclude(request, end_s, outcome)
        self.close()
