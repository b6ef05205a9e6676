"""`SimulationResult`: request arrays and step arrays in SI units, nothing derived."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FINISHED, REJECTED, UNFINISHED, FAILED, TIMED_OUT = 0, 1, 2, 3, 4
"""Values of `RequestTable.outcome`; failed: lost with its replica and not sent again."""

CLUSTER_EVENTS = ("starting", "ready", "draining", "gone", "crashed")
"""Names of `ClusterEvents.what` codes."""
STARTING, READY, DRAINING, GONE, CRASHED = range(5)

BOUNDS = ("compute", "hbm", "link", "launch", "idle")
"""Names of `StepTable.bound` codes; idle is an empty batch."""


@dataclass(frozen=True, slots=True)
class RequestTable:
    """One row a request, in order of `Request.index`. Times NaN where they did not happen."""

    arrival_s: Floats
    scheduled_s: Floats
    first_token_s: Floats
    finish_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    """Tokens delivered."""
    cached_tokens: Ints
    """Prefix-cache hit at first admission."""
    preemptions: Ints
    replica: Ints
    """-1 where none was chosen yet when the run ended."""
    outcome: Ints
    session: Ints
    turn: Ints
    priority: Ints
    name: tuple[str, ...]
    requeues: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Times its replica was lost and it was sent to another, where it began anew: all else in the
    row is of the last time. Empty: none was."""
    attempt: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """From 1: a row is one attempt of a client. This and what follows stands in the order of the
    rows; empty: each is the first and only one."""
    origin: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Row of the first attempt."""
    served_by: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Row of the attempt whose answer it waited for: itself, unless an idempotency key let a
    server see that it worked on the request already."""
    left_s: Floats = field(default_factory=lambda: np.empty(0))
    """When no server had anything left to do for it: `finish_s`, unless its client had gone."""

    def __post_init__(self) -> None:
        rows = np.arange(self.arrival_s.size)
        blanks = {
            "requeues": np.zeros_like(rows),
            "attempt": np.ones_like(rows),
            "origin": rows,
            "served_by": rows,
            "left_s": self.finish_s,
        }
        for name, blank in blanks.items():
            if getattr(self, name).size != rows.size:
                object.__setattr__(self, name, blank)

    def __len__(self) -> int:
        return int(self.arrival_s.size)


@dataclass(frozen=True, slots=True)
class StepTable:
    """One row a step that ran tokens, by time of scheduling (then replica)."""

    replica: Ints
    start_s: Floats
    """When the GPU starts it."""
    end_s: Floats
    """When the GPU is done."""
    scheduled_s: Floats
    prefill_tokens: Ints
    """Of chunks longer than one token."""
    decode_tokens: Ints
    """Of requests that computed exactly one token."""
    running: Ints
    waiting: Ints
    used_blocks: Ints
    preempted: Ints
    bound: Ints
    """Index into `BOUNDS`."""
    busy_s: Floats = field(default_factory=lambda: np.empty(0))
    """How long it keeps a GPU of the replica busy, on average over them; empty: from start to end.
    Pipeline stages work on a step one after another, and on several steps at a time."""

    def __post_init__(self) -> None:
        if self.busy_s.size != self.start_s.size:
            object.__setattr__(self, "busy_s", self.end_s - self.start_s)

    def __len__(self) -> int:
        return int(self.start_s.size)


@dataclass(frozen=True, slots=True)
class ClusterEvents:
    """Changes in the lives of replicas, one row each, in order of time."""

    time_s: Floats = field(default_factory=lambda: np.empty(0))
    replica: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Number of the replica, not of an engine core."""
    what: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Index into `CLUSTER_EVENTS`."""

    def __len__(self) -> int:
        return int(self.time_s.size)


@dataclass(frozen=True, slots=True)
class ReplicaTable:
    """One row a replica, in order of its number (that of creation)."""

    pool: Ints
    """Index into `SimulationResult.pools`."""
    first_core: Ints
    """Number of its first engine core, as in `RequestTable.replica`; the others follow."""
    cores: Ints
    """Its engine cores: data parallel ranks."""
    gpus: Ints
    paid_s: Floats
    """How long it was there, starts included, times between its end and a restart not."""

    def __len__(self) -> int:
        return int(self.paid_s.size)


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """Replicas of one kind.

    Attributes:
        name: of the pool; empty: the scenario has no pools.
        gpu: name of its GPU.
        kv_blocks, block_size: see `SimulationResult`.
    """

    name: str
    gpu: str
    kv_blocks: int
    block_size: int

    @property
    def usable_blocks(self) -> int:
        """KV blocks that requests can hold."""
        return max(0, self.kv_blocks - 1)


@dataclass(frozen=True, slots=True)
class PrefixTotals:
    """Prefix-cache counters summed over replicas, tokens (admissions of preempted ones apart)."""

    queries: int
    hits: int
    preempted_queries: int
    preempted_hits: int


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What a run gave.

    Attributes:
        requests, steps: the tables.
        itl_s: every gap between consecutive tokens of one request, engine core by engine core,
            each in order of delivery.
        prefix: prefix-cache counters.
        kv_blocks: KV blocks of one replica as its engine reports them, the null block included;
            `block_size` tokens each; of several pools those of the first.
        replicas: engine cores that there were, over all replicas and their data parallel ranks.
        simulated_s: time of the last event.
        inputs: the scenario as plain data, for reports and comparisons.
        notes: caveats the forecast carries, one sentence each.
        skipped_steps: steps that the fast engine took as part of a run, not one by one.
        steps_taken: steps there were.
        later_itl_s: makes `itl_s` when it is asked for, if it was not given.
        stride: `steps` and `itl_s` keep one of so many of each engine core; 1: all, 0: none.
        time_by_source_s: GPU seconds by how their duration was obtained (`hwmodels.ops.Source`).
        events: what happened to replicas after the start.
        fleet: the replicas.
        pools: their kinds.
    """

    requests: RequestTable
    steps: StepTable
    itl_s: Floats
    prefix: PrefixTotals
    kv_blocks: int
    block_size: int
    replicas: int
    simulated_s: float
    inputs: dict[str, Any]
    notes: tuple[str, ...] = ()
    time_by_source_s: dict[str, float] = field(default_factory=dict)
    skipped_steps: int = 0
    steps_taken: int = -1
    stride: int = 1

    later_itl_s: Callable[[], Floats] | None = None

    def __post_init__(self) -> None:
        if self.steps_taken < 0:
            object.__setattr__(self, "steps_taken", len(self.steps))
        if self.later_itl_s is not None:
            object.__delattr__(self, "itl_s")

    def __reduce__(self) -> tuple[Any, ...]:
        """Everything is made that was put off."""
        values = {name: getattr(self, name) for name in self.__slots__ if name != "later_itl_s"}
        return _result_of, (values,)

    def __getattr__(self, name: str) -> Any:
        make = self.later_itl_s if name == "itl_s" else None
        if make is None:
            raise AttributeError(name)
        object.__setattr__(self, "itl_s", make())
        return self.itl_s

    events: ClusterEvents = field(default_factory=ClusterEvents)
    fleet: ReplicaTable | None = None
    pools: tuple[PoolFacts, ...] = ()

    @property
    def usable_blocks(self) -> int:
        """KV blocks that requests can hold: vLLM keeps one as the null block."""
        return max(0, self.kv_blocks - 1)

    @property
    def pool_of_core(self) -> Ints:
        """Index into `pools` of each engine core."""
        if self.fleet is None:
            return np.zeros(self.replicas, dtype=np.int64)
        return np.repeat(self.fleet.pool, self.fleet.cores)

    @property
    def usable_of_core(self) -> Ints:
        """KV blocks that requests can hold on each engine core."""
        if not self.pools:
            return np.full(self.replicas, self.usable_blocks, dtype=np.int64)
        by_pool = np.array([pool.usable_blocks for pool in self.pools], dtype=np.int64)
        return by_pool[self.pool_of_core]

    @property
    def kv_in_use(self) -> tuple[Ints | Floats, int]:
        """What a step leaves in use of the KV blocks, and what all of them would be.

        Blocks where all replicas have as many, shares of 1 otherwise.
        """
        if len({pool.kv_blocks for pool in self.pools}) <= 1:
            return self.steps.used_blocks, self.usable_blocks
        return self.steps.used_blocks / self.usable_of_core[self.steps.replica], 1

    @property
    def gpu_s(self) -> float | None:
        """Seconds of GPUs that the run took, idle or not; None: not known."""
        return None if self.fleet is None else float(self.fleet.paid_s @ self.fleet.gpus)

    def to_pandas(self) -> tuple[Any, Any]:
        """Return (requests, steps) as pandas DataFrames (needs the `pandas` extra)."""
        from twin.engine.tabular import to_pandas

        return to_pandas(self)

    def to_parquet(self, directory: str) -> None:
        """Write `requests.parquet` and `steps.parquet` into `directory`, each whole or not."""
        from twin.engine.tabular import to_parquet

        to_parquet(self, directory)


def _result_of(values: dict[str, Any]) -> SimulationResult:
    return SimulationResult(**values)
