"""What the twin says a batch takes on one GPU: its own lowering under its own cost model."""

from dataclasses import replace

from hwmodels.ops import Bound, Collective, CostModel, Op, OpCost, Source
from twin.engine.engines import base_cost_model, serving_engine
from twin.llm.cuda_graphs import padded
from twin.llm.step_time import StepTimer
from twin.scenario import Scenario
from twin.step import BatchShape

LEFT_OUT = (
    "host time between steps, and what an engine's steps without a full CUDA graph wait for it",
    "corrections that a fit to serving runs makes to single kernels",
)
COLLECTIVES_LEFT_OUT = "collectives between the {tp} ranks; shapes are those of one rank"

_NOTHING = OpCost(0.0, Bound.LINK, Source.PHYSICS, kernels=0)


class OneGpu:
    """A cost model for a rank by itself: what links do takes no time."""

    def __init__(self, base: CostModel) -> None:
        self._base = base

    def cost(self, op: Op) -> OpCost:
        """Return the cost of one operation."""
        return _NOTHING if isinstance(op, Collective) else self._base.cost(op)

    def launch_floor_s(self, kernels: int, *, graph: bool) -> float:
        """Return the least seconds a step of that many kernels takes to launch."""
        return self._base.launch_floor_s(kernels, graph=graph)


class Predictor:
    """Predicts the steps of a scenario, kernels alone.

    Args:
        scenario: of one kind of replicas, without pipeline stages.
    """

    def __init__(self, scenario: Scenario) -> None:
        engine = serving_engine(scenario)
        eager = scenario.policy.given.enforce_eager
        self._sizes = () if eager else engine.capture_sizes(scenario)
        self._mixed_sizes = self._sizes if engine.steps_with_prefill_are_captured else ()
        self._timer = StepTimer(
            OneGpu(base_cost_model(scenario)),
            scenario.arch,
            scenario.precision,
            scenario.file.parallelism.tp,
            capture_sizes=self._sizes,
            no_full_graph_s=0.0,
            mixed_graphs=engine.steps_with_prefill_are_captured,
        )

    def seconds(self, shape: BatchShape) -> float:
        """Return the seconds of one step."""
        return self._timer.time(shape).seconds

    def captured_size(self, shape: BatchShape) -> int | None:
        """Return how many tokens the step is padded to in a CUDA graph; None: it has none."""
        sizes = self._mixed_sizes if shape.prefill else self._sizes
        return padded(shape.num_tokens, sizes)


def kernels_alone(scenario: Scenario) -> Scenario:
    """Return the scenario without measured layers, which say nothing of single kernels."""
    return scenario if scenario.layer_profile is None else replace(scenario, layer_profile=None)


def left_out(scenario: Scenario) -> tuple[str, ...]:
    """Return what neither the prediction nor the run on the GPU holds, one phrase each."""
    tp = scenario.file.parallelism.tp
    return (*LEFT_OUT, COLLECTIVES_LEFT_OUT.format(tp=tp)) if tp > 1 else LEFT_OUT
