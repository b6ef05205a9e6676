"""`simulate`: a scenario in, a result out; no files, no globals, no wall clock."""

from collections.abc import Sequence

import numpy as np

from hwmodels.host import HostCosts
from twin.engine.clock import Clock
from twin.engine.delivery import DeliveryQueue
from twin.engine.engines import EngineCosts, front_end_event_s, serving_engine
from twin.engine.fleet import build_replicas
from twin.engine.front_end import FrontEnd
from twin.engine.reference import Progress, ReferenceEngine
from twin.engine.replica import Replica, ServingInstance
from twin.engine.result import PrefixTotals, RequestTable, SimulationResult
from twin.engine.router import ROUTERS
from twin.engine.timers import batch_timer
from twin.llm.op_sum import SOURCES
from twin.scenario import Scenario


def simulate(
    scenario: Scenario, progress: Progress | None = None, costs: EngineCosts | None = None
) -> SimulationResult:
    """Run a scenario on the reference engine.

    Args:
        scenario: from `twin.load.load_scenario`.
        progress: called as requests end, with (ended, expected or None).
        costs: instead of those of the scenario's engine and GPU.

    Returns:
        Request and step arrays; equal scenarios give equal bytes.
    """
    file = scenario.file
    clock = Clock()
    serving = serving_engine(scenario)
    timer, host = batch_timer(scenario, costs)
    replicas = build_replicas(scenario, clock, timer, host)
    _put_servers_before(replicas, scenario, host)
    source = scenario.workload.source(
        np.random.SeedSequence(file.seed), scenario.policy.max_model_len
    )
    engine = ReferenceEngine(
        clock,
        replicas,
        ROUTERS[file.cluster.router](),
        source,
        host,
        accepts=serving.accepts(scenario),
    )
    engine.run(file.horizon_s, progress)
    cores = [core for replica in replicas for core in replica.engines]
    return _result(scenario, engine, cores, clock.now)


def _put_servers_before(
    replicas: Sequence[ServingInstance], scenario: Scenario, host: HostCosts
) -> None:
    """Give each replica its server process, shared by its engine cores, where one may limit."""
    event_s = front_end_event_s(scenario, host)
    if not event_s:
        return
    interval = scenario.policy.given.trtllm.stream_interval
    for replica in replicas:
        delivery = DeliveryQueue(FrontEnd(event_s, interval))
        for core in replica.engines:
            core.delivery = delivery


def _result(
    scenario: Scenario, engine: ReferenceEngine, replicas: Sequence[Replica], now_s: float
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
        block_size=scenario.policy.block_size,
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
