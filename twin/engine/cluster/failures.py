"""Replicas that crash or are drained, as planned or by chance, and what becomes of their requests.

Times between failures and to repair are exponential: failures without memory, at the rate that the
two means say. A replica's clock starts when it becomes ready; a replica has a random stream of its
own, so that what happens to one shifts nothing on another.
"""

from collections.abc import Generator, Sequence

import numpy as np

from twin.cluster import FailuresSpec, ScheduledFailure
from twin.engine.clock import Clock, Event
from twin.engine.cluster.agenda import Agenda
from twin.engine.cluster.member import Life, Member
from twin.engine.cluster.membership import Listener
from twin.engine.reference import ReferenceEngine
from twin.request import RequestState
from twin.workload.streams import Stream


class Failures(Listener):
    """Strikes the replicas of a run.

    Args:
        clock: of the run.
        spec: what is to happen.
        engine: the run.
        seed: root of the random streams.
    """

    def __init__(
        self,
        clock: Clock,
        spec: FailuresSpec,
        engine: ReferenceEngine,
        seed: np.random.SeedSequence,
    ) -> None:
        self._clock, self._spec, self._engine, self._seed = clock, spec, engine, seed
        self._agenda: Agenda = engine.agenda
        self._streams: dict[int, np.random.Generator] = {}
        if spec.scheduled:
            clock.process(self._as_scheduled())
        if spec.random is not None:
            engine.membership.listeners.append(self)
            for member in engine.membership.ready:
                self.ready(member)

    def _as_scheduled(self) -> Generator[Event, None, None]:
        for failure in sorted(self._spec.scheduled, key=lambda failure: failure.at_s):
            yield self._agenda.at(failure.at_s)
            members = self._engine.membership.members
            if failure.replica < len(members):
                self._strike(members[failure.replica], failure)

    def _strike(self, member: Member, failure: ScheduledFailure) -> None:
        """Do it, unless the replica is not there."""
        if failure.kind == "crash" and member.is_there:
            self._crash(member, failure.down_s)
        elif failure.kind == "drain" and member.life in (Life.STARTING, Life.READY):
            self._engine.membership.drain(member, failure.down_s)

    def ready(self, member: Member) -> None:
        """See `Listener`: its clock starts."""
        spec, life = self._spec.random, member.lives
        if spec is None:
            return
        rng = self._stream(member)

        def strike() -> None:
            if member.lives == life and member.is_there:
                self._crash(member, float(rng.exponential(spec.mttr_s)))

        self._agenda.call_at(self._clock.now + float(rng.exponential(spec.mtbf_s)), strike)

    def _stream(self, member: Member) -> np.random.Generator:
        rng = self._streams.get(member.index)
        if rng is None:
            key = (*self._seed.spawn_key, int(Stream.FAILURES), member.index)
            child = np.random.SeedSequence(self._seed.entropy, spawn_key=key)
            rng = self._streams[member.index] = np.random.default_rng(child)
        return rng

    def _crash(self, member: Member, down_s: float | None) -> None:
        self._settle(self._engine.membership.crash(member, down_s))

    def _settle(self, lost: Sequence[RequestState]) -> None:
        """Send the requests of a dead replica again, or end them."""
        spec, requeues = self._spec, self._engine.requests.requeues
        again: list[RequestState] = []
        given_up: list[RequestState] = []
        for state in lost:
            may = spec.in_flight == "requeue" and requeues[state.request.index] < spec.max_requeues
            (again if may else given_up).append(state)
        self._engine.requeue(again)
        for state in given_up:
            self._engine.fail(state.request)
