"""Who times the batches of a scenario: operation by operation, from whole layers, or by stage."""

from collections.abc import Callable

from hwmodels.collectives import collective_cost
from hwmodels.host import HostCosts
from hwmodels.ops import Collective, OpCost
from hwmodels.profile import HardwareProfile
from twin.engine.engines import EngineCosts, engine_costs, serving_engine, step_timer
from twin.engine.layers import LAYER_HOST, layer_timer
from twin.llm.layer_timer import LayerTimer
from twin.llm.pipeline_timer import PipelineTimer, StageLink
from twin.llm.stages import WHOLE, Stage, pipeline_stages
from twin.llm.step_time import StepTimer
from twin.scenario import Scenario

BatchTimer = StepTimer | LayerTimer | PipelineTimer
_StageTimer = StepTimer | LayerTimer


def batch_timer(
    scenario: Scenario, costs: EngineCosts | None = None
) -> tuple[BatchTimer, HostCosts]:
    """Return the timer of one replica's batches, and the host's costs beside it.

    Args:
        scenario: what is simulated.
        costs: instead of those of the scenario's engine and GPU, and instead of measured layers.
    """
    profile = scenario.layer_profile
    if costs is None and profile is not None:
        return _from_layers(scenario, profile), LAYER_HOST
    costs = costs or engine_costs(scenario)
    return _from_operations(scenario, costs), costs.host


def _from_layers(scenario: Scenario, profile: HardwareProfile) -> BatchTimer:
    sizes = serving_engine(scenario).capture_sizes(scenario)

    def cost(op: Collective) -> OpCost:
        return collective_cost(op, scenario.gpu)

    return _by_stage(scenario, lambda stage: layer_timer(scenario, profile, sizes, stage), cost)


def _from_operations(scenario: Scenario, costs: EngineCosts) -> BatchTimer:
    return _by_stage(
        scenario, lambda stage: step_timer(scenario, costs, stage), costs.cost_model.cost
    )


def _by_stage(
    scenario: Scenario,
    time_of: Callable[[Stage], _StageTimer],
    cost: Callable[[Collective], OpCost],
) -> BatchTimer:
    arch, spec = scenario.arch, scenario.file.parallelism
    if spec.pp == 1:
        return time_of(Stage(arch, WHOLE))
    timers = [time_of(stage) for stage in pipeline_stages(arch, spec.pp)]
    return PipelineTimer(timers, StageLink(arch, spec.tp, cost))
