"""Which replicas there are, and which of them take requests."""

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from twin.engine.clock import Clock
from twin.engine.cluster.agenda import Agenda
from twin.engine.cluster.events import CRASHED, DRAINING, GONE, READY, STARTING, EventLog
from twin.engine.cluster.member import Life, Member
from twin.engine.cluster.pool import Pool
from twin.engine.recorder import RequestRecorder
from twin.engine.result import ReplicaTable
from twin.engine.serving import ServingCore
from twin.engine.step_recorder import StepRecorder
from twin.request import Request, RequestState

_index = attrgetter("index")
_first_core = attrgetter("first_core")


class Listener:
    """Who hears of what happens to replicas; does nothing.

    `Membership.listeners` are told in order.
    """

    def ready(self, member: Member) -> None:
        """A replica begins to take requests."""

    def left(self, member: Member) -> None:
        """A replica is gone or dead."""


class Membership:
    """The replicas of all pools, numbered in order of creation, and the changes in their lives.

    Those that a pool has at the start are ready at once.

    Args:
        clock: of this run.
        agenda: what is planned.
        pools: the kinds of replicas.
        records: (requests, steps), where engines write.
        ended: told of (request, time) when a request ended.

    Attributes:
        members: all replicas ever made.
        ready: those that take requests, by number.
        pools: the kinds.
        events: what happened to them.
        cores: engine cores of all of them.
        listeners: who hears of what happens to them.
    """

    def __init__(
        self,
        clock: Clock,
        agenda: Agenda,
        pools: Sequence[Pool],
        records: tuple[RequestRecorder, StepRecorder],
        ended: Callable[[Request, float], None],
    ) -> None:
        self.members: list[Member] = []
        self.ready: list[Member] = []
        self.pools = tuple(pools)
        self.events = EventLog()
        self.cores = 0
        self.listeners: list[Listener] = []
        self._clock, self._agenda, self._records, self._ended = clock, agenda, records, ended
        for pool in pools:
            for _ in range(pool.replicas):
                member = self.add(pool)
                member.life = Life.READY
                self.ready.append(member)

    def add(self, pool: Pool) -> Member:
        """Make one more replica of a kind; it is not there yet."""
        numbers = len(self.members), self.cores
        member = Member(self._clock, numbers, pool, self._records, self._request_ended)
        self.members.append(member)
        self.cores += pool.cores
        return member

    def of_core(self, core: int) -> Member:
        """Return the replica that has an engine core."""
        return self.members[bisect_right(self.members, core, key=_first_core) - 1]

    def start(self, member: Member) -> None:
        """Start a replica that is gone or dead, with a cold cache."""
        now = self._clock.now
        if member.life is Life.GONE:
            member.crash()  # it holds nothing but its cache
        member.started_s, member.returns = now, False
        member.lives += 1
        self._becomes(member, Life.STARTING, STARTING)
        turn = member.turn

        def started() -> None:
            if member.turn == turn:
                self._is_ready(member)

        if member.pool.startup_s:
            self._agenda.call_at(now + member.pool.startup_s, started)
        else:
            started()

    def drain(self, member: Member, down_s: float | None = None) -> None:
        """Give a replica nothing new; when it has finished what it has, it is gone.

        `down_s`: it starts again so long after that; None: it does not.
        """
        member.down_s = down_s
        self._no_longer_ready(member)
        if member.life is Life.READY and member.load_requests:
            self._becomes(member, Life.DRAINING, DRAINING)
        else:
            self._leaves(member, Life.GONE)

    def crash(self, member: Member, down_s: float | None = None) -> list[RequestState]:
        """Let a replica die at once; return what it had been given and not finished.

        `down_s`: see `drain`.
        """
        member.down_s = down_s
        self._no_longer_ready(member)
        lost = member.crash()
        self._leaves(member, Life.DEAD)
        return lost

    def stay_away(self, member: Member) -> None:
        """Let a replica that is gone or dead not start again by itself."""
        member.returns = False
        member.turn += 1

    def _is_ready(self, member: Member) -> None:
        self._becomes(member, Life.READY, READY)
        insort(self.ready, member, key=_index)
        for listener in self.listeners:
            listener.ready(member)

    def _no_longer_ready(self, member: Member) -> None:
        if member.life is Life.READY:
            self.ready.remove(member)

    def _leaves(self, member: Member, life: Life) -> None:
        now = self._clock.now
        member.paid_s += now - member.started_s
        self._becomes(member, life, GONE if life is Life.GONE else CRASHED)
        if member.down_s is not None:
            member.returns = True
            turn = member.turn

            def back() -> None:
                if member.turn == turn:
                    self.start(member)

            self._agenda.call_at(now + member.down_s, back)
        for listener in self.listeners:
            listener.left(member)

    def _becomes(self, member: Member, life: Life, what: int) -> None:
        member.life = life
        member.turn += 1
        self.events.add(self._clock.now, member.index, what)

    def _request_ended(self, member: Member, request: Request, end_s: float) -> None:
        self._ended(request, end_s)
        self.let_go(member)

    def let_go(self, member: Member) -> None:
        """A request left a replica; a draining one may have been waiting for that."""
        if member.life is Life.DRAINING and not member.load_requests:
            self._leaves(member, Life.GONE)

    def paid_s(self, member: Member) -> float:
        """Return how long a replica has been there, its starts included, up to now."""
        running_s = self._clock.now - member.started_s if member.is_there else 0.0
        return member.paid_s + running_s

    def engine_cores(self) -> list[ServingCore]:
        """Return the engine cores that were ever built, by number."""
        instances = [member.instance for member in self.members]
        return [core for instance in instances if instance for core in instance.engines]

    def table(self) -> ReplicaTable:
        """Return the replicas as arrays, as of now."""
        members, pools = self.members, list(self.pools)
        rows = {
            "pool": [pools.index(member.pool) for member in members],
            "first_core": [member.first_core for member in members],
            "cores": [member.pool.cores for member in members],
            "gpus": [member.pool.gpus for member in members],
        }
        return ReplicaTable(
            paid_s=np.array([self.paid_s(member) for member in members], dtype=np.float64),
            **{name: np.array(row, dtype=np.int64) for name, row in rows.items()},
        )
