"""Parts of a workload: what trials see, what is kept from them for the winner."""

import math
from dataclasses import dataclass, replace

import numpy as np

from twin.load.inputs import Inputs
from twin.scenario import ScenarioFile
from twin.search.piece import Piece
from twin.workload.arrivals import ArrivalStage, StagedArrivals
from twin.workload.build import LoadedWorkload
from twin.workload.spec import (
    ClosedLoopWorkload,
    SessionWorkload,
    SharedPrefixWorkload,
    SyntheticWorkload,
    TraceWorkload,
    WorkloadSpec,
)
from twin.workload.trace import Trace

_HELD_OUT = 0x68656C64
"""Mixed into a seed for requests that no trial has met."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a workload.

    Attributes:
        workload: its requests.
        seed: of all that is random in its run.
        horizon_s: when the run stops; None: when all is served.
    """

    workload: LoadedWorkload
    seed: int
    horizon_s: float | None


@dataclass(frozen=True, slots=True)
class Slicer:
    """Cuts a workload; equal pieces give equal slices.

    A trace is cut by time (by rows where it has no times of its own): trials see the first
    `search_share` of its window, the winner meets the rest. Requests that are made up are made
    anew from another seed for the winner.

    Attributes:
        file: the scenario.
        inputs: its files, read.
        search_share: of a trace's window.
    """

    file: ScenarioFile
    inputs: Inputs
    search_share: float

    def cut(self, piece: Piece) -> Slice:
        """Return a piece."""
        seed = self.file.seed if piece.seed is None else piece.seed
        workload = self.inputs.workload
        if isinstance(workload.spec, TraceWorkload):
            return self._of_trace(workload.spec, seed, self._bounds(piece))
        if piece.part == "held_out":
            seed = fresh_seed(seed)
        horizon_s = None if self.file.horizon_s is None else self.file.horizon_s * piece.share
        return Slice(replace(workload, spec=shortened(workload.spec, piece.share)), seed, horizon_s)

    def _of_trace(self, spec: TraceWorkload, seed: int, bounds: tuple[float, float]) -> Slice:
        key = (spec.path, spec.format)
        trace = meant(spec, self.inputs.workload.traces[key])
        begin, end = bounds
        horizon_s = self.file.horizon_s
        if not trace.timed or spec.arrivals is not None:
            cut = _rows(trace, begin, end)
            if horizon_s is not None:
                horizon_s *= end - begin
        else:
            length_s = float(trace.arrival_s[-1])
            if horizon_s is not None:  # in the time of the run, not of the file
                length_s = min(length_s, horizon_s * spec.rate_scale)
                horizon_s -= length_s / spec.rate_scale * (1 - (end - begin))
            # The last request of all arrives at the very end.
            end_s = math.inf if end == 1 else end * length_s
            cut = trace.window(begin * length_s, end_s)
        return Slice(LoadedWorkload(spec, {key: cut}), seed, horizon_s)

    def _bounds(self, piece: Piece) -> tuple[float, float]:
        """Return where a piece begins and ends, as shares of the whole."""
        begin, end = {
            "search": (0.0, self.search_share),
            "held_out": (self.search_share, 1.0),
            "all": (0.0, 1.0),
        }[piece.part]
        length, to = end - begin, piece.start + piece.share
        last = to >= 1 - 1e-9
        return begin + piece.start * length, end if last else begin + to * length


def fresh_seed(seed: int) -> int:
    """Return the seed of requests that a run of `seed` has not met."""
    return int(np.random.SeedSequence([seed, _HELD_OUT]).generate_state(1, np.uint64)[0] >> 1)


def meant(spec: TraceWorkload, trace: Trace) -> Trace:
    """Return the rows that a scenario's own run would draw from."""
    if spec.max_requests is None:
        return trace
    rows = min(len(trace), math.ceil(spec.max_requests / spec.sample))
    return trace if rows == len(trace) else trace.take(np.arange(rows))


def _rows(trace: Trace, begin: float, end: float) -> Trace:
    first, last = (round(share * len(trace)) for share in (begin, end))
    first = min(first, len(trace) - 1)
    return trace.take(np.arange(first, max(last, first + 1)))


def shortened(spec: WorkloadSpec, share: float) -> WorkloadSpec:
    """Return a made-up workload that ends after the first `share` of it."""
    if share == 1 or isinstance(spec, TraceWorkload):
        return spec
    if isinstance(spec, SharedPrefixWorkload):
        stages = tuple(
            stage.model_copy(
                update={"duration_s": max(stage.duration_s * share, 1.001 / stage.rate)}
            )
            for stage in spec.stages
        )
        return spec.model_copy(update={"stages": stages})
    if isinstance(spec, ClosedLoopWorkload):
        count = max(math.ceil(spec.num_requests * share), min(spec.concurrency, spec.num_requests))
        return spec.model_copy(update={"num_requests": count})
    changes: dict[str, object] = {}
    name = "num_requests" if isinstance(spec, SyntheticWorkload) else "num_sessions"
    count = getattr(spec, name)
    if count is not None:
        changes[name] = max(1, math.ceil(count * share))
    if isinstance(spec, SyntheticWorkload | SessionWorkload):
        if spec.duration_s is not None:
            changes["duration_s"] = spec.duration_s * share
        if isinstance(spec.arrivals, StagedArrivals):
            changes["arrivals"] = _first_stages(spec.arrivals, share)
    return spec.model_copy(update=changes)


def _first_stages(arrivals: StagedArrivals, share: float) -> StagedArrivals:
    """Return the stages of the first `share` of the time, the last one cut."""
    left_s = share * sum(stage.duration_s for stage in arrivals.stages)
    kept: list[ArrivalStage] = []
    for stage in arrivals.stages:
        if left_s <= 0:
            break
        kept.append(stage.model_copy(update={"duration_s": min(stage.duration_s, left_s)}))
        left_s -= stage.duration_s
    return arrivals.model_copy(update={"stages": tuple(kept)})
