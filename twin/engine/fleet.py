"""The replicas of a scenario, each one engine core or a group of data-parallel ranks."""

from collections.abc import Sequence

from hwmodels.host import HostCosts
from twin.engine.clock import Clock
from twin.engine.data_parallel import (
    DataParallelReplica,
    FastReportingRank,
    GroupTimer,
    Lockstep,
    LockstepRank,
    ReportingRank,
)
from twin.engine.engines import serving_engine
from twin.engine.fast import FastReplica
from twin.engine.gpu import Gpus, OneStage, Pipeline
from twin.engine.lazy.replica import LazyReplica
from twin.engine.rank_balancer import (
    Coordinator,
    RankBalancer,
    in_flight_floor,
    waiting_weighs_four,
)
from twin.engine.replica import Replica, ServingInstance
from twin.engine.timers import BatchTimer
from twin.errors import ServetwinError
from twin.llm.engine_version import parse_version
from twin.llm.group_timer import OpsGroupTimer
from twin.llm.layer_group import LayerGroupTimer
from twin.llm.layer_timer import LayerTimer
from twin.llm.pipeline_timer import PipelineTimer
from twin.llm.step_time import StepTimer
from twin.scenario import Scenario
from twin.scheduling import VllmV1Scheduler

# The version whose balancing rule was read beside 0.19.0's; where between them it changed is not
# known.
_IN_FLIGHT_FLOOR_FROM = (0, 33, 0)


def build_replicas(
    scenario: Scenario, clock: Clock, timer: BatchTimer, host: HostCosts, *, fast: bool = False
) -> Sequence[ServingInstance]:
    """Return the replicas a router chooses from; engine cores are numbered through.

    `fast`: engine cores skip what they know ahead, where they can.
    """
    replicas, dp = scenario.file.cluster.replicas, scenario.file.parallelism.dp
    if dp == 1:
        return [
            _engine_core(scenario, clock, index, (timer, host), fast) for index in range(replicas)
        ]
    return [
        _data_parallel(scenario, clock, index, (timer, host), fast) for index in range(replicas)
    ]


def _engine_core(
    scenario: Scenario,
    clock: Clock,
    index: int,
    parts: tuple[BatchTimer, HostCosts],
    fast: bool,
) -> Replica:
    timer, host = parts
    scheduler = serving_engine(scenario).scheduler(scenario)
    if fast and isinstance(timer, StepTimer) and isinstance(scheduler, VllmV1Scheduler):
        return LazyReplica(clock, index, scheduler, timer, host)
    if fast and not isinstance(timer, PipelineTimer):
        return FastReplica(clock, index, scheduler, timer, host)
    return Replica(clock, index, scheduler, gpus_of(scenario, timer), host)


def gpus_of(scenario: Scenario, timer: BatchTimer) -> Gpus:
    """Return the GPUs of one engine core, idle."""
    if isinstance(timer, PipelineTimer):
        return Pipeline(timer, feeds_back=scenario.policy.async_scheduling)
    return OneStage(timer)


def group_timer(scenario: Scenario, timer: BatchTimer) -> GroupTimer:
    """Return who times passes of ranks that share experts."""
    spec = scenario.file.parallelism
    if isinstance(timer, PipelineTimer):
        raise ServetwinError("ranks that share experts are not timed stage by stage")
    if isinstance(timer, LayerTimer):
        return LayerGroupTimer(timer, spec.dp)
    return OpsGroupTimer(timer, spec.dp, spec.ep)


def _data_parallel(
    scenario: Scenario,
    clock: Clock,
    index: int,
    parts: tuple[BatchTimer, HostCosts],
    fast: bool,
) -> DataParallelReplica:
    dp = scenario.file.parallelism.dp
    version = parse_version(scenario.file.engine.version) or _IN_FLIGHT_FLOOR_FROM
    newer = version >= _IN_FLIGHT_FLOOR_FROM
    lockstep = scenario.arch.moe is not None
    coordinator = Coordinator(dp, settles=lockstep)
    numbers = range(index * dp, (index + 1) * dp)
    ranks: list[Replica]
    if lockstep:
        make = serving_engine(scenario).scheduler
        shared = Lockstep(clock, dp, group_timer(scenario, parts[0]))
        ranks = [
            LockstepRank(clock, number, make(scenario), parts[1], (rank, shared, coordinator))
            for rank, number in enumerate(numbers)
        ]
    elif newer:
        ranks = [
            _reporting_rank(scenario, clock, number, parts, (rank, coordinator), fast)
            for rank, number in enumerate(numbers)
        ]
    else:
        # In 0.19.0 only ranks in lockstep tell the coordinator their counts.
        ranks = [_engine_core(scenario, clock, number, parts, fast) for number in numbers]
    score = in_flight_floor if newer else waiting_weighs_four
    balancer = RankBalancer(coordinator, score, rotates=newer)
    return DataParallelReplica(clock, index, ranks, balancer)


def _reporting_rank(
    scenario: Scenario,
    clock: Clock,
    index: int,
    parts: tuple[BatchTimer, HostCosts],
    place: tuple[int, Coordinator],
    fast: bool,
) -> ReportingRank:
    timer, host = parts
    scheduler = serving_engine(scenario).scheduler(scenario)
    rank: ReportingRank
    if fast and not isinstance(timer, PipelineTimer):
        rank = FastReportingRank(clock, index, scheduler, timer, host)
    else:
        rank = ReportingRank(clock, index, scheduler, gpus_of(scenario, timer), host)
    rank.join(*place)
    return rank
