"""`pool_history`: a scenario again, step by step, with an eye on its KV memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from twin.engine.engines import EngineCosts
from twin.engine.reference import Progress
from twin.engine.result import SimulationResult
from twin.engine.run import simulate
from twin.engine.timers import BatchTimer, batch_timer
from twin.recording import RecordingSpec
from twin.request import Request
from twin.scenario import Scenario, pools_of
from twin.telemetry.pool.recomputation import Preemption, Recomputation, stalled_s, step_times
from twin.telemetry.pool.samples import PoolSamples
from twin.telemetry.pool.state import Ints

MOST_INTERVALS, MOST_ROWS = 160, 50
"""The pool is read this often at most, its blocks counted in so many rows at most."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A request that lost its KV blocks to others.

    Attributes:
        request: which.
        core: the engine core.
        at_s: when.
        recomputed_tokens: what it had computed before and computed again.
        recomputed_s: seconds of its replica's GPUs for that.
        stalled_s: until it was back where it had been; NaN: it lost its blocks again before, or
            the run ended.
    """

    request: Request
    core: int
    at_s: float
    recomputed_tokens: int
    recomputed_s: float
    stalled_s: float


@dataclass(frozen=True, slots=True)
class PoolHistory:
    """The block pool of one engine core over a run, and what all of them lost and found.

    Attributes:
        engine: name of the serving engine.
        core, cores: whose blocks these are, and how many engine cores there were.
        block_tokens: tokens a block.
        usable_blocks: blocks that requests can hold.
        edges_s: borders of the intervals, shape (intervals + 1,).
        states: (owned, cached, free) blocks at each of `edges_s`, shape (intervals + 1, 3).
        cells: blocks by instant, row and kind (`twin.telemetry.pool.samples.KINDS`); None: the
            engine only counts its blocks.
        first_block: of each row of `cells`, and the number of blocks at the end.
        queries_tokens, hits_tokens: prefix cache of all cores, by interval (first admissions).
        losses: every preemption of all cores, in order of time.
    """

    engine: str
    core: int
    cores: int
    block_tokens: int
    usable_blocks: int
    edges_s: NDArray[np.float64]
    states: Ints
    cells: Ints | None
    first_block: tuple[int, ...]
    queries_tokens: Ints
    hits_tokens: Ints
    losses: tuple[Loss, ...]

    @property
    def recomputed_tokens(self) -> int:
        """Tokens computed twice."""
        return sum(loss.recomputed_tokens for loss in self.losses)

    @property
    def recomputed_s(self) -> float:
        """Seconds of replicas' GPUs for that."""
        return sum(loss.recomputed_s for loss in self.losses)


def pool_history(
    scenario: Scenario,
    progress: Progress | None = None,
    *,
    costs: EngineCosts | None = None,
    engine: str = "fast",
) -> PoolHistory | None:
    """Run a scenario twice: quickly, to know how long it takes, then step by step.

    Args:
        scenario: what is simulated.
        progress: called as requests of the second run end.
        costs: see `twin.engine.run.simulate`.
        engine: of the first run; the results are the same.

    Returns:
        What the pool of the core that preempted most (else: held most) did; None: no step ran.
    """
    scenario = _recording_all(scenario)
    known = simulate(scenario, costs=costs, engine=engine)
    if not len(known.steps):
        return None
    core, edges_s = _busiest(known), _edges_s(known)
    samples, again = PoolSamples(edges_s.tolist(), core, MOST_ROWS), Recomputation()
    result = simulate(scenario, progress, costs, "reference", watch=again, look=samples)
    samples.finish()
    again.price(_Timers(scenario, result, costs))
    pool = pools_of(scenario)[int(result.pool_of_core[core])].scenario
    return PoolHistory(
        engine=pool.file.engine.name,
        core=core,
        cores=result.replicas,
        block_tokens=pool.policy.block_size,
        usable_blocks=int(samples.states[0].sum()),
        edges_s=edges_s,
        states=samples.states,
        cells=samples.cells,
        first_block=tuple(samples.first_block),
        queries_tokens=_by_interval(samples.queries_tokens),
        hits_tokens=_by_interval(samples.hits_tokens),
        losses=_losses(again.preemptions, result),
    )


def _recording_all(scenario: Scenario) -> Scenario:
    """Steps are told apart by their number, so all have to be there."""
    return replace(scenario, file=scenario.file.model_copy(update={"recording": RecordingSpec()}))


def _edges_s(result: SimulationResult) -> NDArray[np.float64]:
    steps = result.steps
    return np.linspace(steps.scheduled_s.min(), steps.end_s.max(), MOST_INTERVALS + 1)


def _busiest(result: SimulationResult) -> int:
    steps = result.steps
    lost = np.bincount(steps.replica, weights=steps.preempted, minlength=result.replicas)
    held = np.zeros(result.replicas)
    np.maximum.at(held, steps.replica, steps.used_blocks / np.maximum(1, _usable(result)))
    return int(np.lexsort((-held, -lost))[0])


def _usable(result: SimulationResult) -> Ints:
    usable: Ints = result.usable_of_core[result.steps.replica]
    return usable


def _by_interval(counted: Ints) -> Ints:
    """Return what was added in each interval; what happened at its very start is the first's."""
    return np.diff(np.concatenate(([0], counted[1:])))


class _Timers:
    """The timer of each engine core's batches, made when one is asked for."""

    def __init__(
        self, scenario: Scenario, result: SimulationResult, costs: EngineCosts | None
    ) -> None:
        self._pools, self._pool_of_core = pools_of(scenario), result.pool_of_core
        self._costs = costs
        self._made: dict[int, BatchTimer] = {}

    def __call__(self, core: int) -> BatchTimer:
        pool = int(self._pool_of_core[core])
        if pool not in self._made:
            self._made[pool] = batch_timer(self._pools[pool].scenario, self._costs)[0]
        return self._made[pool]


def _losses(preemptions: Sequence[Preemption], result: SimulationResult) -> tuple[Loss, ...]:
    when = step_times(result)
    losses = [
        Loss(
            lost.request,
            lost.step[0],
            when(lost.step)[0],
            lost.recomputed_tokens,
            lost.recomputed_s,
            stalled_s(lost, when),
        )
        for lost in preemptions
    ]
    return tuple(sorted(losses, key=lambda loss: loss.at_s))
