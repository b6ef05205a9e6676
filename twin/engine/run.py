"""`simulate`: a scenario in, a result out; no files, no globals, no wall clock."""

import numpy as np

from hwmodels.cost import cost_model_for
from hwmodels.host import host_costs_for
from twin.engine.clock import Clock
from twin.engine.reference import Progress, ReferenceEngine
from twin.engine.replica import Replica
from twin.engine.result import PrefixTotals, RequestTable, SimulationResult
from twin.engine.router import ROUTERS
from twin.llm.cuda_graphs import capture_sizes
from twin.llm.step_time import SOURCES, StepTimer
from twin.request import Request
from twin.scenario import Scenario
from twin.scheduling import SCHEDULERS
from twin.scheduling.limits import SchedulerLimits


def simulate(scenario: Scenario, progress: Progress | None = None) -> SimulationResult:
    """Run a scenario on the reference engine.

    Args:
        scenario: from `twin.load.load_scenario`.
        progress: called as requests end, with (ended, expected or None).

    Returns:
        Request and step arrays; equal scenarios give equal bytes.
    """
    file = scenario.file
    clock = Clock()
    host = host_costs_for(file.engine.name, file.engine.version)
    limits = scheduler_limits(scenario)
    replicas = [
        Replica(clock, index, SCHEDULERS[file.engine.name](limits), timer, host)
        for index, timer in enumerate([step_timer(scenario)] * file.cluster.replicas)
    ]
    source = scenario.workload.source(
        np.random.SeedSequence(file.seed), scenario.policy.max_model_len
    )
    engine = ReferenceEngine(
        clock,
        replicas,
        ROUTERS[file.cluster.router](),
        source,
        host,
        accepts=lambda request: _server_takes(request, limits),
    )
    engine.run(file.horizon_s, progress)
    return _result(scenario, engine, replicas, clock.now)


def _server_takes(request: Request, limits: SchedulerLimits) -> bool:
    """Whether vLLM's server takes a request; one that asks for more than the context gets 400."""
    asked = request.prompt_tokens + request.max_tokens
    return asked <= limits.max_model_len and limits.fits(request)


def scheduler_limits(scenario: Scenario) -> SchedulerLimits:
    """Return what the scheduler must respect."""
    policy, given = scenario.policy, scenario.policy.given
    return SchedulerLimits(
        max_num_seqs=policy.max_num_seqs,
        max_num_batched_tokens=policy.max_num_batched_tokens,
        max_model_len=policy.max_model_len,
        block_size=given.block_size,
        num_gpu_blocks=scenario.num_gpu_blocks,
        enable_prefix_caching=given.enable_prefix_caching,
        enable_chunked_prefill=given.enable_chunked_prefill,
        long_prefill_token_threshold=given.long_prefill_token_threshold,
        scheduling_policy=given.scheduling_policy,
        scheduler_reserve_full_isl=given.scheduler_reserve_full_isl,
        watermark=given.watermark,
        async_scheduling=policy.async_scheduling,
        eviction=given.eviction,
    )


def step_timer(scenario: Scenario) -> StepTimer:
    """Return the durations of one replica's forward passes."""
    policy, engine = scenario.policy, scenario.file.engine
    return StepTimer(
        cost_model_for(scenario.gpu.name, engine.name, engine.version),
        scenario.arch,
        scenario.precision,
        tp=scenario.file.parallelism.tp,
        capture_sizes=capture_sizes(
            policy.max_num_seqs,
            policy.max_num_batched_tokens,
            datacenter_blackwell=scenario.gpu.compute_capability == (10, 0),
        ),
        eager=policy.given.enforce_eager,
    )


def _result(
    scenario: Scenario, engine: ReferenceEngine, replicas: list[Replica], now_s: float
) -> SimulationResult:
    counters = [replica.scheduler.prefix for replica in replicas]
    table = engine.requests.table()
    horizon_s = scenario.file.horizon_s
    return SimulationResult(
        requests=table if horizon_s is None else _arrived(table, horizon_s),
        steps=engine.steps.table(),
        itl_s=np.array(engine.requests.itl_s, dtype=np.float64),
        prefix=PrefixTotals(
            queries=sum(c.queries for c in counters),
            hits=sum(c.hits for c in counters),
            preempted_queries=sum(c.preempted_queries for c in counters),
            preempted_hits=sum(c.preempted_hits for c in counters),
        ),
        kv_blocks=scenario.num_gpu_blocks,
        block_size=scenario.policy.given.block_size,
        replicas=len(replicas),
        simulated_s=now_s,
        inputs=scenario.as_dict(),
        notes=scenario.notes,
        time_by_source_s={
            source.value: sum(replica.time_by_source_s[index] for replica in replicas)
            for index, source in enumerate(SOURCES)
        },
    )


def _arrived(table: RequestTable, horizon_s: float) -> RequestTable:
    """Leave out requests that the horizon cut off before they arrived."""
    here = table.arrival_s <= horizon_s
    columns = {
        name: getattr(table, name)[here] for name in RequestTable.__slots__ if name != "name"
    }
    names = tuple(n for n, keep in zip(table.name, here.tolist(), strict=True) if keep)
    return RequestTable(**columns, name=names)
