"""`offered`: how much load a scenario asks for, whatever of it is served."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from twin.errors import InputError
from twin.load.inputs import Inputs
from twin.scenario import ScenarioFile
from twin.workload.arrivals import Arrivals, ArrivalStage, StagedArrivals
from twin.workload.lengths import mean_of
from twin.workload.open_loop import chosen
from twin.workload.spec import (
    ClosedLoopWorkload,
    LoadStage,
    SessionWorkload,
    SyntheticWorkload,
    TraceWorkload,
)

LoadUnit = Literal["req/s", "clients"]


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked for.

    Attributes:
        value: requests a second on average over the time they are sent in, or clients.
        unit: which of the two: a closed loop has no rate of its own.
    """

    value: float
    unit: LoadUnit


def offered(file: ScenarioFile, inputs: Inputs) -> Load:
    """Return the load that a scenario offers, clients' second attempts not counted.

    Made-up traffic: the rate it is drawn from. Sessions: their rate times turns. A trace: its
    requests over first to last arrival.

    Raises:
        InputError: the trace has no times, or all of it comes at once.
    """
    spec = file.workload
    if isinstance(spec, TraceWorkload):
        return Load(_of_trace(spec, inputs, file.seed), "req/s")
    if isinstance(spec, SyntheticWorkload):
        return Load(_mean_rate(spec.arrivals), "req/s")
    if isinstance(spec, SessionWorkload):
        return Load(_mean_rate(spec.arrivals) * mean_of(spec.turns), "req/s")
    if isinstance(spec, ClosedLoopWorkload):
        return Load(float(spec.concurrency), "clients")
    return Load(_mean_of_stages(spec.stages), "req/s")


def _of_trace(spec: TraceWorkload, inputs: Inputs, seed: int) -> float:
    if spec.arrivals is not None:
        return _mean_rate(spec.arrivals)
    trace = inputs.workload.traces[spec.path, spec.format]
    rows = chosen(spec, trace, np.random.SeedSequence(seed))
    span_s = float(rows.arrival_s[-1] - rows.arrival_s[0]) / spec.rate_scale
    if not span_s > 0:
        raise InputError(
            "its requests all arrive at once, so there is no load to scale",
            where=trace.path,
            remedy="set workload.arrivals to spread them",
        )
    return (len(rows) - 1) / span_s


def _mean_rate(arrivals: Arrivals) -> float:
    if isinstance(arrivals, StagedArrivals):
        return _mean_of_stages(arrivals.stages)
    return arrivals.rate


def _mean_of_stages(stages: Sequence[ArrivalStage | LoadStage]) -> float:
    sent = sum(stage.rate * stage.duration_s for stage in stages)
    return sent / sum(stage.duration_s for stage in stages)
