"""The plain engine: simpy processes, one time-out a step. The oracle of every faster one."""

import math
from collections import deque
from collections.abc import Callable, Generator, Sequence

from hwmodels.host import HostCosts
from twin.engine.clock import URGENT, Clock, Event
from twin.engine.recorder import RequestRecorder, StepRecorder
from twin.engine.replica import ServingInstance
from twin.engine.router import Router
from twin.request import Request, RequestState
from twin.workload.source import RequestSource

Progress = Callable[[int, int | None], None]
"""Called with (requests ended, requests expected or None)."""

Admission = Callable[[Request], bool]
"""Whether the server takes a request (it answers 400 otherwise)."""


class ReferenceEngine:
    """Replicas behind a router, fed by a workload that hears of completions.

    Args:
        clock: the simpy environment of this run.
        replicas: engine instances, already on `clock`.
        router: chooses a replica for each request.
        source: the workload, spent by the run.
        host: host costs; `api_s` passes between a request's arrival and the engine core.
        accepts: whether the server takes a request.
    """

    def __init__(
        self,
        clock: Clock,
        replicas: Sequence[ServingInstance],
        router: Router,
        source: RequestSource,
        host: HostCosts,
        accepts: Admission,
    ) -> None:
        self.requests = RequestRecorder()
        self.steps = StepRecorder()
        self._clock = clock
        self._replicas = replicas
        self._router = router
        self._source = source
        self._api_s = host.api_s
        self._accepts = accepts
        self._due: deque[Request] = deque()
        self._delivering = False
        self._last_stamp_s = -math.inf
        self._ended = 0
        self._progress: Progress | None = None

    def run(self, horizon_s: float | None = None, progress: Progress | None = None) -> None:
        """Run until nothing is left to do, or to `horizon_s`."""
        self._progress = progress
        for replica in self._replicas:
            self._clock.process(replica.run(self.requests, self.steps, self._on_finish))
        self._clock.process(self._arrivals(self._source.start()))
        self._clock.run(until=horizon_s)

    def _arrivals(self, requests: Sequence[Request]) -> Generator[Event, None, None]:
        for request in requests:
            self.requests.arrive(request)
        for request in requests:
            at_s = request.arrival_s + self._api_s
            if at_s > self._clock.now:
                yield self._clock.at(at_s, URGENT)
            self._due.append(request)
            self._deliver_due()

    def _deliver_due(self) -> None:
        # A rejection ends a request at once and may bring about the next one, which may be
        # rejected too: a loop, since a recursion would be as deep as the workload is long.
        if self._delivering:
            return
        self._delivering = True
        while self._due:
            self._deliver(self._due.popleft())
        self._delivering = False

    def _deliver(self, request: Request) -> None:
        index = self._router.choose(request, self._replicas)
        if self._accepts(request):
            state = RequestState(request, arrival_s=self._stamp(request.arrival_s))
            self.requests.submit(state, self._replicas[index].submit(state))
        else:
            self.requests.reject(request, index, self._clock.now)
            self._on_end(request, self._clock.now, rejected=True)

    def _stamp(self, arrival_s: float) -> float:
        """Return the engine's time stamp: the arrival, later than every stamp before it."""
        self._last_stamp_s = max(arrival_s, math.nextafter(self._last_stamp_s, math.inf))
        return self._last_stamp_s

    def _on_finish(self, request: Request, end_s: float) -> None:
        self._on_end(request, end_s, rejected=False)

    def _on_end(self, request: Request, end_s: float, *, rejected: bool) -> None:
        self._ended += 1
        if self._progress is not None:
            self._progress(self._ended, self._source.expected_requests)
        for follower in self._source.on_end(request, end_s, rejected=rejected):
            self.requests.arrive(follower)
            self._expect(follower)
        self._deliver_due()

    def _expect(self, request: Request) -> None:
        at_s = request.arrival_s + self._api_s
        if at_s <= self._clock.now:
            self._due.append(request)
            return

        def arrived(_: Event) -> None:
            self._due.append(request)
            self._deliver_due()

        callbacks = self._clock.at(at_s, URGENT).callbacks
        if callbacks is not None:  # a fresh event always has them
            callbacks.append(arrived)
