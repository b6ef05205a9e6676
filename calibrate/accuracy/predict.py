"""What the twin says of measured rows."""

import math
from dataclasses import dataclass, replace

import numpy as np

from calibrate.accuracy.closed_loop import ClosedLoop, LoopTimes
from calibrate.accuracy.costs import ServingCosts
from calibrate.accuracy.policies import ample_policy, holds_all_clients
from calibrate.accuracy.rows import Row
from calibrate.accuracy.scenarios import network_of, scenario_of
from hwmodels.ops import CostModel
from hwmodels.scaled import RememberingCostModel
from twin.engine.engines import (
    EngineCosts,
    base_cost_model,
    corrected,
    front_end_event_s,
    step_timer,
)
from twin.engine.run import simulate
from twin.errors import ServetwinError
from twin.llm.step_time import StepTimer
from twin.scenario import Scenario
from twin.workload.closed_loop import ClosedLoopSource

REFERENCE_ONLY = "left to the reference engine"

# Share of the run from which the server's process counts as what limits.
_FRONT_END_LIMIT = 0.75


@dataclass(frozen=True, slots=True)
class Prediction:
    """A row and what was predicted for it.

    Attributes:
        ttft_s, tpot_s: predicted means; NaN if it could not be predicted, TPOT also of answers
            of one token.
        why_not: why it could not; else empty.
        kv_limited: the KV cache does not hold all clients' longest requests at once.
        front_end_limited: the server's process is busy with tokens most of the time.
        moe: the network has experts.
        fast: computed by `ClosedLoop`; else by the reference engine.
    """

    row: Row
    ttft_s: float = math.nan
    tpot_s: float = math.nan
    why_not: str = ""
    kv_limited: bool = False
    front_end_limited: bool = False
    moe: bool = False
    fast: bool = False

    @property
    def has_tpot(self) -> bool:
        """Whether there is a TPOT to judge: answers of one token have none."""
        return math.isfinite(self.tpot_error)

    @property
    def ttft_error(self) -> float:
        """Relative error of TTFT, signed."""
        return self.ttft_s / self.row.ttft_s - 1

    @property
    def tpot_error(self) -> float:
        """Relative error of TPOT, signed."""
        return self.tpot_s / self.row.tpot_s - 1


@dataclass(frozen=True, slots=True)
class Variant:
    """A prediction that does without something, to see what it is worth.

    Attributes:
        exact_graphs: every batch size is captured, so nothing is padded.
        in_lockstep: a step is decided when the one before is done.
        skip_first_wave: means leave out the requests that all clients send at the start.
        ample_kv: KV blocks without end.
    """

    exact_graphs: bool = False
    in_lockstep: bool = False
    skip_first_wave: bool = False
    ample_kv: bool = False

    def of(self, scenario: Scenario) -> Scenario:
        """Return a scenario as this variant has it."""
        if self.in_lockstep:
            scenario = replace(scenario, policy=replace(scenario.policy, async_scheduling=False))
        return replace(scenario, num_gpu_blocks=_ENDLESS) if self.ample_kv else scenario

    def timer(self, timer: StepTimer) -> StepTimer:
        """Return a step timer as this variant has it; it must be fresh."""
        if self.exact_graphs and timer.capture_sizes:
            timer.capture_sizes = tuple(range(1, timer.capture_sizes[-1] + 1))
        return timer


WHOLE = Variant()
_ENDLESS = 2**40


class Predictor:
    """Predicts rows, keeping what it worked out about each of them.

    A fit asks for the same rows under many costs: scenarios, lengths and priced operations stay.
    """

    def __init__(self) -> None:
        self._scenarios: dict[str, Scenario | str] = {}
        self._cost_models: dict[tuple[str, ...], CostModel] = {}

    def predict(
        self,
        row: Row,
        costs: ServingCosts,
        *,
        reference: bool = True,
        variant: Variant = WHOLE,
    ) -> Prediction:
        """Return what the twin says of a row.

        Args:
            row: the measured point.
            costs: the costs to predict with.
            reference: let the reference engine serve what `ClosedLoop` cannot; else such a row
                is not predicted.
            variant: what the prediction does without; not for the reference engine.
        """
        arch = network_of(row)
        blank = Prediction(row, moe=arch is not None and arch.moe is not None)
        scenario = self.scenario(row)
        if isinstance(scenario, str):
            return replace(blank, why_not=scenario)
        scenario = variant.of(scenario)
        lengths = lengths_of(scenario)
        limited = not holds_all_clients(scenario, lengths, row.concurrency)
        blank = replace(blank, kv_limited=limited)
        policy = ample_policy(scenario, lengths, row.concurrency)
        if policy is not None:
            timer = variant.timer(step_timer(scenario, self._engine_costs(scenario, costs)))
            host = replace(costs.host, front_end_event_s=front_end_event_s(scenario, costs.host))
            loop = ClosedLoop(policy, timer, host, lengths[1], row.concurrency, costs.turnaround_s)
            times = loop.run()
            if variant.skip_first_wave:
                times = times.without_first(row.concurrency)
            return _filled(replace(blank, fast=True), times)
        if not reference:
            return replace(blank, why_not=REFERENCE_ONLY)
        try:
            return _filled(blank, self._by_reference(scenario, costs))
        except ServetwinError as error:
            return replace(blank, why_not=str(error))

    def scenario(self, row: Row) -> Scenario | str:
        """Return a row's scenario, or why there is none."""
        known = self._scenarios.get(row.row_id)
        if known is None:
            try:
                known = scenario_of(row)
            except ServetwinError as error:
                known = str(error)
            self._scenarios[row.row_id] = known
        return known

    def _base_model(self, scenario: Scenario) -> CostModel:
        engine = scenario.file.engine
        key = (scenario.gpu.name, engine.name, engine.version, scenario.arch.name)
        model = self._cost_models.get(key)
        if model is None:
            model = self._cost_models[key] = RememberingCostModel(base_cost_model(scenario))
        return model

    def _engine_costs(self, scenario: Scenario, costs: ServingCosts) -> EngineCosts:
        base = self._base_model(scenario)
        return EngineCosts(costs.host, corrected(scenario, base, costs.corrections, costs.host))

    def _by_reference(self, scenario: Scenario, costs: ServingCosts) -> LoopTimes:
        workload = scenario.workload
        spec = workload.spec.model_copy(update={"think_time_s": costs.turnaround_s})
        scenario = replace(scenario, workload=replace(workload, spec=spec))
        requests = simulate(scenario, costs=self._engine_costs(scenario, costs)).requests
        return LoopTimes(
            requests.arrival_s,
            requests.first_token_s,
            requests.finish_s,
            requests.output_tokens,
        )


def lengths_of(scenario: Scenario) -> tuple[list[int], list[int]]:
    """Return prompt and answer tokens of a scenario's requests, in the order they are sent."""
    source = scenario.workload.source(
        np.random.SeedSequence(scenario.file.seed), scenario.policy.max_model_len
    )
    if not isinstance(source, ClosedLoopSource):
        raise TypeError("not a closed loop")
    return source.prompt_tokens, source.max_tokens


def _filled(blank: Prediction, times: LoopTimes) -> Prediction:
    if not np.isfinite(times.finish_s).all():
        return replace(blank, why_not="some requests were refused")
    busy = times.front_end_share > _FRONT_END_LIMIT
    return replace(blank, ttft_s=times.ttft_s, tpot_s=times.tpot_s, front_end_limited=bool(busy))
