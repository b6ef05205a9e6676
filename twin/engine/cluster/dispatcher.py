"""The router at work: requests that have come go to replicas, in order."""

import math
from collections import deque
from collections.abc import Callable, Iterable

from twin.engine.clock import Clock
from twin.engine.cluster.member import Member
from twin.engine.cluster.membership import Listener, Membership
from twin.engine.recorder import RequestRecorder
from twin.engine.routers import Router
from twin.request import Request, RequestState


class Dispatcher(Listener):
    """Sends each request to a replica that takes requests; keeps those that find none.

    Args:
        clock: of this run.
        router: chooses among the replicas that are ready.
        membership: the replicas.
        requests: where it writes.
        refused: told of each request that a server does not take.

    Attributes:
        queue: requests for which there is no replica, first come first.
        nobody_there: called when a request joins `queue`.
    """

    def __init__(
        self,
        clock: Clock,
        router: Router,
        membership: Membership,
        requests: RequestRecorder,
        refused: Callable[[Request], None],
    ) -> None:
        self.queue: deque[Request] = deque()
        self.nobody_there: Callable[[], None] | None = None
        self._clock, self._router, self._membership = clock, router, membership
        self._requests, self._refused = requests, refused
        self._due: deque[Request] = deque()
        self._delivering = False
        self._last_stamp_s = -math.inf
        membership.listeners.append(self)

    def send(self, requests: Iterable[Request]) -> None:
        """Send requests now, after those that are being sent."""
        self._due.extend(requests)
        self._deliver_due()

    def put(self, request: Request) -> None:
        """Send a request with the next ones that are sent."""
        self._due.append(request)

    def take_back(self, request: Request) -> bool:
        """Take a request out of the queue; False: it is not there."""
        if request not in self.queue:
            return False
        self.queue.remove(request)
        return True

    def ready(self, member: Member) -> None:
        """See `Listener`: those who waited for a replica go first."""
        del member
        self._due.extendleft(reversed(self.queue))
        self.queue.clear()
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
        ready = self._membership.ready
        if not ready:
            self.queue.append(request)
            if self.nobody_there is not None:
                self.nobody_there()
            return
        if self._router.looks:
            for pool in self._membership.pools:
                pool.sync()
        member = ready[self._router.choose(request, ready)]
        if member.pool.accepts(request):
            state = RequestState(request, arrival_s=self._stamp(request.arrival_s))
            self._requests.submit(state, member.submit(state))
        else:
            self._requests.reject(request, member.first_core, self._clock.now)
            self._refused(request)

    def _stamp(self, arrival_s: float) -> float:
        """Return the engine's time stamp: the arrival, later than every stamp before it."""
        self._last_stamp_s = max(arrival_s, math.nextafter(self._last_stamp_s, math.inf))
        return self._last_stamp_s
