"""`simulate`: a scenario in, a result out; no files, no globals, no wall clock."""

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np

from twin.engine.clients.layer import ClientLayer
from twin.engine.clock import Clock
from twin.engine.cluster.autoscaler import autoscale
from twin.engine.cluster.failures import Failures
from twin.engine.compiled.jit import check_installed, is_installed, is_kept
from twin.engine.engines import EngineCosts
from twin.engine.fleet import CoreKind, pool_of_scenario
from twin.engine.reference import Progress, ReferenceEngine
from twin.engine.replica import PlanWatcher, StateWatcher
from twin.engine.result import PoolFacts, PrefixTotals, RequestTable, SimulationResult
from twin.engine.routers import ROUTERS
from twin.engine.serving import ServingCore
from twin.engine.timers import batch_timer
from twin.llm.op_sum import SOURCES
from twin.scenario import Scenario, ScenarioFile, ScenarioPool, pools_of
from twin.workload.clients_spec import ClientsSpec
from twin.workload.source import RequestSource
from twin.workload.streams import Stream, generator

ENGINES = ("fast", "compiled", "interpreted", "reference")
"""`reference` takes every step. The others skip runs of steps that they know ahead: `interpreted`
in Python, `compiled` by numba, as far as it covers a deployment; `fast` is whichever is quicker."""

_WORTH_LOADING = 2_000
"""Requests from which on it pays to load compiled code (half a second)."""

WORTH_COMPILING = 100_000
"""Requests from which on it pays to compile (some ten seconds on a fast machine, a minute on a
slow one), where no earlier process has."""


def simulate(
    scenario: Scenario,
    progress: Progress | None = None,
    costs: EngineCosts | None = None,
    engine: str = "fast",
    watch: PlanWatcher | None = None,
    look: StateWatcher | None = None,
) -> SimulationResult:
    """Run a scenario.

    Args:
        scenario: from `twin.load.load_scenario`.
        progress: called as requests end, with (ended, expected or None).
        costs: instead of those of the scenario's engine and GPU.
        engine: one of `ENGINES`; their results are the same, bit for bit.
        watch: is shown the plan of every step that runs tokens; `reference` alone takes all.
        look: is shown every scheduler before it changes; must change nothing itself.

    Returns:
        Request and step arrays; equal scenarios give equal bytes.

    Raises:
        InputError: `compiled` was asked for, and numba is not installed.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine {engine!r} is none of {', '.join(ENGINES)}")
    if (watch is not None or look is not None) and engine != "reference":
        raise ValueError(
            f"engine {engine!r} does not take every step; watch goes with reference, and look too"
        )
    if engine == "compiled":
        check_installed()
    file, clock = scenario.file, Clock()
    pools = pools_of(scenario)
    parts = [batch_timer(pool.scenario, costs) for pool in pools]
    seed = np.random.SeedSequence(file.seed)
    context = max(pool.scenario.policy.max_model_len for pool in pools)
    source = scenario.workload.source(seed, context)
    clients = _clients(file.clients, source, clock, seed)
    kind = replace(_cores(engine, clients or source, file), watch=watch, look=look)
    spec = file.cluster.router
    loop = ReferenceEngine(
        clock,
        [
            pool_of_scenario(pool, clock, part, kind)
            for pool, part in zip(pools, parts, strict=True)
        ],
        ROUTERS[spec.kind](spec, generator(seed, Stream.ROUTING)),
        clients or source,
        parts[0][1],
        file.recording.stride,
    )
    if clients is not None:
        clients.join(loop)
    if file.cluster.failures is not None:
        Failures(clock, file.cluster.failures, loop, seed)
    autoscale(clock, loop)
    with _uncollected() if kind.compiled else nullcontext():
        loop.run(file.horizon_s, progress)
        cores = loop.membership.engine_cores()
        horizon_s = math.inf if file.horizon_s is None else file.horizon_s
        ends_s = [core.settle(horizon_s, loop.requests, loop.steps) for core in cores]
    if file.horizon_s is None:
        clock.jump(max([clock.now, *ends_s]))  # passive replicas went on without it
    table = loop.requests.table()
    if clients is not None:
        table = replace(table, **clients.columns())
    return _result(scenario, table, loop, cores)


def quickest_engine() -> str:
    """Return the engine that many runs are quickest with: loading the code is paid once."""
    return "compiled" if is_installed() and is_kept() else "fast"


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without searches for garbage: each would look at all requests again, for little to find."""
    if not gc.isenabled() or gc.get_freeze_count():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # There and back, what has come meanwhile counts as old: else it would be searched now.
        gc.freeze()
        gc.unfreeze()
        gc.enable()


def _recording_note(stride: int) -> tuple[str, ...]:
    if stride == 1:
        return ()
    if not stride:
        return ("No steps and no gaps between tokens were recorded: figures of them are missing.",)
    return (
        f"Figures of steps and of gaps between tokens rest on a sample: one of {stride} of each "
        "engine core.",
    )


def _cores(engine: str, source: RequestSource, file: ScenarioFile) -> CoreKind:
    """Return what kind of engine cores an engine has."""
    compiled, cluster = engine == "compiled", file.cluster
    requests = source.expected_requests or 0
    if engine == "fast" and requests >= _WORTH_LOADING and is_installed():
        compiled = requests >= WORTH_COMPILING or is_kept()
    scales = any(pool.autoscaler for pool in cluster.pools or ()) or bool(cluster.autoscaler)
    hears = source.hears_of_ends or cluster.failures is not None
    return CoreKind(engine != "reference", compiled, hears or scales, file.recording.stride)


def _clients(
    spec: ClientsSpec | None, source: RequestSource, clock: Clock, seed: np.random.SeedSequence
) -> ClientLayer | None:
    """Return who sends a workload's requests; None: the workload itself."""
    if spec is None:
        return None
    return ClientLayer(spec, source, clock, generator(seed, Stream.CLIENTS))


def _result(
    scenario: Scenario,
    table: RequestTable,
    engine: ReferenceEngine,
    replicas: Sequence[ServingCore],
) -> SimulationResult:
    counters = [replica.prefix for replica in replicas]
    horizon_s = scenario.file.horizon_s
    return SimulationResult(
        requests=table if horizon_s is None else _arrived(table, horizon_s),
        steps=engine.steps.table(),
        itl_s=np.empty(0),
        later_itl_s=lambda: engine.requests.itl_s,
        prefix=PrefixTotals(
            queries=sum(c.queries for c in counters),
            hits=sum(c.hits for c in counters),
            preempted_queries=sum(c.preempted_queries for c in counters),
            preempted_hits=sum(c.preempted_hits for c in counters),
        ),
        kv_blocks=scenario.num_gpu_blocks,
        block_size=scenario.policy.block_size,
        replicas=engine.membership.cores,
        simulated_s=engine.now_s,
        steps_taken=engine.steps.total,
        stride=scenario.file.recording.stride,
        inputs=scenario.as_dict(),
        notes=(*scenario.notes, *_recording_note(scenario.file.recording.stride)),
        skipped_steps=sum(replica.skipped_steps for replica in replicas),
        time_by_source_s={
            source.value: sum(replica.time_by_source_s[index] for replica in replicas)
            for index, source in enumerate(SOURCES)
        },
        events=engine.membership.events.table(),
        fleet=engine.membership.table(),
        pools=tuple(_facts(pool) for pool in pools_of(scenario)),
    )


def _facts(pool: ScenarioPool) -> PoolFacts:
    scenario = pool.scenario
    return PoolFacts(
        pool.name, scenario.gpu.name, scenario.num_gpu_blocks, scenario.policy.block_size
    )


def _arrived(table: RequestTable, horizon_s: float) -> RequestTable:
    """Leave out requests that the horizon cut off before they arrived."""
    here = table.arrival_s <= horizon_s
    columns = {
        name: getattr(table, name)[here] for name in RequestTable.__slots__ if name != "name"
    }
    row = np.cumsum(here) - 1
    for name in ("origin", "served_by"):
        columns[name] = row[columns[name]]
    names = tuple(n for n, keep in zip(table.name, here.tolist(), strict=True) if keep)
    return RequestTable(**columns, name=names)
