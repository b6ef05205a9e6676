"""A replica as the cluster sees it: where it stands in its life, and what it has been given."""

from collections.abc import Callable
from enum import IntEnum

from twin.engine.clock import NORMAL, Clock
from twin.engine.cluster.pool import Pool
from twin.engine.recorder import RequestRecorder
from twin.engine.serving import OnEnd, ServingCore, ServingInstance
from twin.engine.step_recorder import StepRecorder
from twin.request import Request, RequestState


class Life(IntEnum):
    """Where a replica stands."""

    STARTING = 0
    READY = 1
    DRAINING = 2
    GONE = 3
    DEAD = 4


_THERE = (Life.STARTING, Life.READY, Life.DRAINING)


class Member:
    """One replica; its engine is built when the first request comes.

    Args:
        clock: of this run.
        numbers: (its number among the replicas, that of its first engine core).
        pool: what kind it is.
        records: (requests, steps), where its engine writes.
        ended: told of (it, request, time) when a request ended there.

    Attributes:
        index, first_core: its numbers.
        life: where it stands.
        load_requests: requests it was given that have not ended, as of its pool's last `sync`.
        instance: its engine; None: not built yet.
        started_s: when it was last started.
        paid_s: seconds of its lives before this one.
        down_s: how long after its end it starts again; None: it does not.
        returns: it is gone or dead, and will start again by itself.
        lives: how often it was started.
        turn: number of changes in its life, by which a plan tells that it is outdated.
    """

    __slots__ = (
        "_clock", "_ended", "_records", "down_s", "first_core", "index", "instance",
        "life",
        "lives", "load_requests", "paid_s", "pool", "returns", "started_s", "turn",
    )  # fmt: skip

    def __init__(
        self,
        clock: Clock,
        numbers: tuple[int, int],
        pool: Pool,
        records: tuple[RequestRecorder, StepRecorder],
        ended: "Callable[[Member, Request, float], None]",
    ) -> None:
        self.index, self.first_core = numbers
        self.pool = pool
        self.life = Life.GONE
        self.load_requests = self.turn = self.lives = 0
        self.instance: ServingInstance | None = None
        self.started_s = self.paid_s = 0.0
        self.down_s: float | None = None
        self.returns = False
        self._clock, self._records, self._ended = clock, records, ended

    @property
    def is_there(self) -> bool:
        """Whether it is starting, ready or draining."""
        return self.life in _THERE

    @property
    def load_tokens(self) -> int:
        """Tokens of its requests' prompts and of their answers so far."""
        instance = self.instance
        if instance is None:
            return 0
        instance.sync()
        return instance.load_tokens

    @property
    def waiting_requests(self) -> int:
        """Those of its requests that wait for their first place in a batch, or for another."""
        return sum(core.waiting_requests for core in self._cores())

    @property
    def kv_usage(self) -> float:
        """Share of its KV blocks that requests hold."""
        cores = self._cores()
        usable = sum(core.usable_blocks for core in cores)
        return sum(core.used_blocks for core in cores) / usable if usable else 0.0

    def _cores(self) -> "tuple[ServingCore, ...]":
        if self.instance is None:
            return ()
        self.instance.sync()
        return self.instance.engines

    def cached_prefix_tokens(self, request: Request) -> int:
        """Return the length of the longest prefix of a prompt that its cache holds."""
        instance = self.instance
        if instance is None:
            return 0
        instance.sync()
        return instance.cached_prefix_tokens(request)

    @property
    def is_passive(self) -> bool:
        """Whether its engine writes things down only when it is asked."""
        return self.instance is not None and self.instance.passive

    def catch_up(self, request: Request) -> None:
        """Let what has become of a request before now be written down."""
        if self.instance is not None:
            self.instance.catch_up(request)

    def submit(self, state: RequestState) -> int:
        """Hand it a request now; return the index of the engine core that has it."""
        instance = self.instance or self._build()
        self.load_requests += 1
        return instance.submit(state)

    def crash(self) -> list[RequestState]:
        """Lose everything its engine holds; return the requests, in its order."""
        if self.instance is None:
            return []
        self.load_requests = 0
        return self.instance.crash()

    def abort(self, state: RequestState) -> bool:
        """Take a request back; False: it has ended already."""
        if self.instance is None or not self.instance.abort(state):
            return False
        self.load_requests -= 1
        return True

    def _build(self) -> ServingInstance:
        """Build the engine; it looks for requests once all that come at this instant have come."""
        instance = self.instance = self.pool.build(self.index, self.first_core)
        requests, steps = self._records
        on_end = self._on_end()

        def start() -> None:
            self._clock.process(instance.run(requests, steps, on_end))

        self._clock.call_at(self._clock.now, start, NORMAL)
        return instance

    def _on_end(self) -> OnEnd:
        ended = self._ended

        def on_end(request: Request, end_s: float) -> None:
            self.load_requests -= 1
            ended(self, request, end_s)

        return on_end
