"""How many replicas a pool has: the rule of Kubernetes' HorizontalPodAutoscaler.

    desired = ceil(current * metric / target)

where the metric is a mean over the current replicas; a ratio within the tolerance of 1 changes
nothing. Up goes what every recommendation of the scale-up window agrees on, down what every one of
the scale-down window does (its lowest, its highest), within the limits. A HorizontalPodAutoscaler
itself does not start a pool from zero; here a request that finds no replica does, as activators
(Knative, KEDA) do it.

Source: Kubernetes documentation, "Horizontal Pod Autoscaling": algorithm, stabilization window.
"""

import math
from collections import deque
from collections.abc import Generator, Sequence

from twin.cluster import AutoscalerSpec
from twin.engine.clock import Clock, Event
from twin.engine.cluster.agenda import Agenda
from twin.engine.cluster.dispatcher import Dispatcher
from twin.engine.cluster.member import Life, Member
from twin.engine.cluster.membership import Listener, Membership
from twin.engine.cluster.pool import Pool
from twin.engine.reference import ReferenceEngine

_COUNTED = (Life.STARTING, Life.READY)


class _Window:
    """The largest of the recommendations of the last seconds, or the smallest.

    Only those are kept that no later one outdoes: an evaluation costs the same however many there
    are in the window.

    Args:
        seconds: how long one counts.
        sign: 1 for the largest, -1 for the smallest.
    """

    def __init__(self, seconds: float, sign: int) -> None:
        self._seconds, self._sign = seconds, sign
        self._kept: deque[tuple[float, int]] = deque()

    def after(self, now_s: float, number: int) -> int:
        """Add a recommendation; return the extreme one of the window that ends now."""
        kept, sign = self._kept, self._sign
        while kept and sign * kept[-1][1] <= sign * number:
            kept.pop()
        kept.append((now_s, number))
        while kept[0][0] < now_s - self._seconds:
            kept.popleft()
        return kept[0][1]


class Autoscaler:
    """Starts and drains the replicas of one pool.

    Args:
        clock: of this run.
        agenda: what is planned.
        membership: all replicas.
        dispatcher: what requests wait for a replica.
        rule: (the pool, how it scales).
    """

    def __init__(
        self,
        clock: Clock,
        agenda: Agenda,
        membership: Membership,
        dispatcher: Dispatcher,
        rule: tuple[Pool, AutoscalerSpec],
    ) -> None:
        self.pool, self._spec = rule
        self._clock, self._agenda = clock, agenda
        self._membership, self._dispatcher = membership, dispatcher
        up_s, down_s = rule[1].scale_up_stabilization_s, rule[1].scale_down_stabilization_s
        self._least, self._most = _Window(up_s, -1), _Window(down_s, 1)

    def run(self) -> Generator[Event, None, None]:
        """Evaluate the metric at every interval, as a simpy process."""
        tick = 0
        while True:
            tick += 1
            yield self._agenda.at(tick * self._spec.interval_s)
            self._scale_to(self._stabilized(self._recommendation()))

    def wake(self) -> bool:
        """Start a first replica, if there is none and none will be; return whether it did."""
        if self._current():
            return False
        self._start_one()
        return True

    def _mine(self) -> list[Member]:
        return [member for member in self._membership.members if member.pool is self.pool]

    def _current(self) -> list[Member]:
        """Return the replicas that are there or, after a crash, will be again by themselves."""
        return [member for member in self._mine() if member.life in _COUNTED or member.returns]

    def _recommendation(self) -> int:
        current = len(self._current())
        needed = self._metric() / self._spec.target
        if self._dispatcher.queue:  # whatever the metric says, somebody has to serve them
            needed = max(1.0, needed)
        if current and abs(needed / current - 1.0) <= self._spec.tolerance:
            return current
        return math.ceil(needed)

    def _metric(self) -> float:
        """Return the metric summed over replicas; who waits for a replica counts as waiting."""
        ready = [member for member in self._mine() if member.life is Life.READY]
        if self._spec.metric == "kv_usage":
            return sum(member.kv_usage for member in ready)
        if self._spec.metric == "waiting":
            here = sum(member.waiting_requests for member in ready)
        else:
            here = sum(member.load_requests for member in ready)
        return float(here + len(self._dispatcher.queue))

    def _stabilized(self, wanted: int) -> int:
        """Return the number to have now, by the recommendations of both windows."""
        spec, now = self._spec, self._clock.now
        least, most = self._least.after(now, wanted), self._most.after(now, wanted)
        number = min(max(len(self._current()), least), most)
        return min(max(number, spec.min_replicas), spec.max_replicas)

    def _scale_to(self, number: int) -> None:
        current = self._current()
        for _ in range(number - len(current)):
            self._start_one()
        for _ in range(len(current) - number):
            self._stop_one()

    def _start_one(self) -> None:
        """Start the first replica that is not there, or one more."""
        unused = (m for m in self._mine() if not m.is_there and not m.returns)
        self._membership.start(next(unused, None) or self._membership.add(self.pool))

    def _stop_one(self) -> None:
        """Drain the newest; before it goes one that is down already."""
        current = self._current()
        down = [member for member in current if member.returns]
        if down:
            self._membership.stay_away(down[-1])
        else:
            self._membership.drain(max(current, key=lambda m: (m.started_s, m.index)))


class Activator(Listener):
    """Starts a replica for requests that find none, in the first pool that may.

    Args:
        engine: the run.
        scalers: of its pools.
    """

    def __init__(self, engine: ReferenceEngine, scalers: Sequence[Autoscaler]) -> None:
        self._members, self._queue = engine.membership.members, engine.dispatcher.queue
        self._scalers = scalers
        engine.dispatcher.nobody_there = self.wake
        engine.membership.listeners.append(self)

    def wake(self) -> None:
        """Start one, unless one is starting."""
        if not any(member.life is Life.STARTING for member in self._members):
            any(scaler.wake() for scaler in self._scalers)

    def left(self, member: Member) -> None:
        """See `Listener`: it may have been the one they waited for."""
        del member
        if self._queue:
            self.wake()


def autoscale(clock: Clock, engine: ReferenceEngine) -> None:
    """Scale the pools of a run that want it."""
    scalers = [
        Autoscaler(clock, engine.agenda, engine.membership, engine.dispatcher, (pool, rule))
        for pool in engine.membership.pools
        if (rule := pool.autoscaler) is not None
    ]
    for scaler in scalers:
        clock.process(scaler.run())
    if scalers:
        Activator(engine, scalers)
