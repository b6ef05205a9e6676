"""The replicas of a scenario, each one engine core or a group of data-parallel ranks."""

from collections.abc import Callable
from dataclasses import dataclass

from hwmodels.host import HostCosts
from twin.engine.clock import Clock
from twin.engine.cluster.pool import Pool, nothing
from twin.engine.data_parallel import (
    DataParallelReplica,
    FastReportingRank,
    LockstepRank,
    ReportingRank,
)
from twin.engine.delivery import DeliveryQueue
from twin.engine.engines import front_end_event_s, serving_engine, vllm_limits
from twin.engine.fast import FastReplica
from twin.engine.front_end import FrontEnd
from twin.engine.gpu import Gpus, OneStage, Pipeline
from twin.engine.lazy.replica import LazyReplica
from twin.engine.lockstep import GroupTimer, Lockstep
from twin.engine.rank_balancer import (
    Coordinator,
    RankBalancer,
    in_flight_floor,
    waiting_weighs_four,
)
from twin.engine.replica import PlanWatcher, Replica, StateWatcher
from twin.engine.serving import ServingInstance
from twin.engine.timers import BatchTimer
from twin.errors import ServetwinError
from twin.llm.engine_version import parse_version
from twin.llm.group_timer import OpsGroupTimer
from twin.llm.layer_group import LayerGroupTimer
from twin.llm.layer_timer import LayerTimer
from twin.llm.pipeline_timer import PipelineTimer
from twin.llm.step_time import StepTimer
from twin.scenario import Scenario, ScenarioPool
from twin.scheduling import VllmV1Scheduler
from twin.scheduling.prompt_keys import PromptKeys

# The version whose balancing rule was read beside 0.19.0's; where between them it changed is not
# known.
_IN_FLIGHT_FLOOR_FROM = (0, 33, 0)


# Up to so many an index by tokens or sequences of a batch takes a few dozen MB.
_MOST_TOKENS, _MOST_SEQS = 2**22, 2**14

Maker = tuple[Callable[[int], ServingInstance], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class CoreKind:
    """What kind of engine cores a run has.

    Attributes:
        fast: they skip what they know ahead, where they can.
        compiled: those that can be are compiled.
        hears: somebody must hear of ends of requests when they happen.
        stride: of steps and gaps one is kept of so many; 0: none.
        watch, look: who is shown every plan, and every state; go with cores that aren't fast.
    """

    fast: bool
    compiled: bool
    hears: bool
    stride: int = 1
    watch: PlanWatcher | None = None
    look: StateWatcher | None = None


def pool_of_scenario(
    pool: ScenarioPool, clock: Clock, parts: tuple[BatchTimer, HostCosts], kind: CoreKind
) -> Pool:
    """Return replicas of one kind.

    Args:
        pool: what a scenario says of them.
        clock: of this run.
        parts: (who times batches, the host's costs).
        kind: of its engine cores.
    """
    scenario = pool.scenario
    spec, keys = scenario.file.parallelism, PromptKeys()
    make, sync = _maker(scenario, clock, parts, kind)

    def build(number: int, first_core: int) -> ServingInstance:
        replica: ServingInstance
        if spec.dp == 1:
            replica = make(first_core)
        else:
            place = number, first_core
            replica = _data_parallel(scenario, clock, place, parts, fast=kind.fast)
        for core in replica.engines:
            core.prompt_keys = keys
            if isinstance(core, Replica):
                core.watch, core.look = kind.watch, kind.look
        _put_server_before(replica, scenario, parts[1])
        return replica

    return Pool(
        pool.replicas,
        build,
        serving_engine(scenario).accepts(scenario),
        cores=spec.dp,
        gpus=spec.tp * spec.pp * spec.dp,
        startup_s=pool.startup_s,
        autoscaler=pool.autoscaler,
        name=pool.name,
        sync=sync,
    )


def _put_server_before(replica: ServingInstance, scenario: Scenario, host: HostCosts) -> None:
    """Give a replica its server process, shared by its engine cores, where it may limit."""
    event_s = front_end_event_s(scenario, host)
    if event_s:
        interval = scenario.policy.given.trtllm.stream_interval
        delivery = DeliveryQueue(FrontEnd(event_s, interval))
        for core in replica.engines:
            core.delivery = delivery


def _maker(
    scenario: Scenario, clock: Clock, parts: tuple[BatchTimer, HostCosts], kind: CoreKind
) -> Maker:
    """Return what makes an engine core of its number, and what brings all to the present."""
    timer, host = parts
    if kind.compiled and isinstance(timer, StepTimer) and _can_be_compiled(scenario):
        return _compiled_maker(scenario, clock, (timer, host), kind)

    def make(index: int) -> ServingInstance:
        return _engine_core(scenario, clock, index, parts, fast=kind.fast)

    return make, nothing


def _engine_core(
    scenario: Scenario,
    clock: Clock,
    index: int,
    parts: tuple[BatchTimer, HostCosts],
    *,
    fast: bool,
) -> Replica:
    timer, host = parts
    scheduler = serving_engine(scenario).scheduler(scenario, lambda: clock.now)
    if not fast or isinstance(timer, PipelineTimer):
        return Replica(clock, index, scheduler, gpus_of(scenario, timer), host)
    if isinstance(timer, StepTimer) and isinstance(scheduler, VllmV1Scheduler):
        return LazyReplica(clock, index, scheduler, timer, host)
    return FastReplica(clock, index, scheduler, timer, host)


def _can_be_compiled(scenario: Scenario) -> bool:
    """Whether the compiled core has the rules, and indices for all sizes of batches."""
    if scenario.file.engine.name != "vllm" or scenario.file.parallelism.dp > 1:
        return False
    limits = vllm_limits(scenario)
    small = limits.max_num_batched_tokens <= _MOST_TOKENS and limits.max_num_seqs <= _MOST_SEQS
    return small and limits.eviction == "lru"


def _compiled_maker(
    scenario: Scenario, clock: Clock, parts: tuple[StepTimer, HostCosts], kind: CoreKind
) -> Maker:
    # Here, since the package needs numba, which is optional and slow to import.
    from twin.engine.compiled.fleet import CompiledFleet
    from twin.engine.compiled.replica import CompiledReplica

    timer, host = parts
    fleet = CompiledFleet(
        vllm_limits(scenario), timer, host, kind.stride, scenario.file.cluster.replicas
    )

    def make(index: int) -> ServingInstance:
        return CompiledReplica(clock, index, fleet, hears=kind.hears)

    def sync() -> None:
        fleet.sync(clock.now)

    return make, nothing if kind.hears else sync


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
    place: tuple[int, int],
    parts: tuple[BatchTimer, HostCosts],
    *,
    fast: bool,
) -> DataParallelReplica:
    dp = scenario.file.parallelism.dp
    index, first_core = place
    version = parse_version(scenario.file.engine.version) or _IN_FLIGHT_FLOOR_FROM
    newer = version >= _IN_FLIGHT_FLOOR_FROM
    lockstep = scenario.arch.moe is not None
    coordinator = Coordinator(dp, settles=lockstep)
    numbers = range(first_core, first_core + dp)
    ranks: list[Replica]
    if lockstep:
        make = serving_engine(scenario).scheduler
        shared = Lockstep(clock, dp, group_timer(scenario, parts[0]))
        ranks = [
            LockstepRank(
                clock,
                number,
                make(scenario, lambda: clock.now),
                parts[1],
                (rank, shared, coordinator),
            )
            for rank, number in enumerate(numbers)
        ]
    elif newer:
        ranks = [
            _reporting_rank(scenario, clock, number, parts, (rank, coordinator), fast)
            for rank, number in enumerate(numbers)
        ]
    else:
        # In 0.19.0 only ranks in lockstep tell the coordinator their counts.
        ranks = [_engine_core(scenario, clock, number, parts, fast=fast) for number in numbers]
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
    scheduler = serving_engine(scenario).scheduler(scenario, lambda: clock.now)
    rank: ReportingRank
    if fast and not isinstance(timer, PipelineTimer):
        rank = FastReportingRank(clock, index, scheduler, timer, host)
    else:
        rank = ReportingRank(clock, index, scheduler, gpus_of(scenario, timer), host)
    rank.join(*place)
    return rank
