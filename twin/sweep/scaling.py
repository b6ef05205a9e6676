"""`scaled`: the same workload at a multiple of its load."""

import math
from collections.abc import Callable
from typing import Any

from twin.errors import InputError
from twin.load.variant import variant
from twin.scenario import ScenarioFile
from twin.workload.arrivals import Arrivals, StagedArrivals
from twin.workload.spec import (
    ClosedLoopWorkload,
    SessionWorkload,
    SharedPrefixWorkload,
    SyntheticWorkload,
    TraceWorkload,
)

Changes = dict[str, Any]


def scaled(file: ScenarioFile, factor: float) -> ScenarioFile:
    """Return the scenario at `factor` times its load; 1 is the very same file.

    What stays as it is, by kind of workload:

    * trace, and synthetic with `num_requests`: the requests, which come closer together;
    * synthetic with `duration_s`, stages (by the clock or of shared_prefix): the duration, in
      which more requests come;
    * sessions: how long sessions go on starting, whether by `duration_s` or `num_sessions`: one
      lasts as long at any load, so the same few would not be so many times the load;
    * closed_loop: how many requests a client sends, at higher loads; at lower ones the number of
      requests. `offered` counts clients.

    Args:
        file: a validated scenario file; its paths are absolute.
        factor: above 0.

    Raises:
        InputError: no such factor, or the load leaves the bounds of a workload.
    """
    if not (factor > 0 and math.isfinite(factor)):
        raise InputError(
            f"{factor:g} is no multiple of a load", where="factor", remedy="give a number above 0"
        )
    if factor == 1:
        return file
    workload = file.workload
    changes = _SCALED[type(workload)](workload, factor)
    where = f"{file.name} at {factor:g} times its load"
    return variant(file, {f"workload.{key}": value for key, value in changes.items()}, where=where)


def _trace(spec: TraceWorkload, factor: float) -> Changes:
    if spec.arrivals is not None:
        return {"arrivals": _faster(spec.arrivals, factor)}
    return {"rate_scale": spec.rate_scale * factor}


def _synthetic(spec: SyntheticWorkload, factor: float) -> Changes:
    return {"arrivals": _faster(spec.arrivals, factor)}


def _sessions(spec: SessionWorkload, factor: float) -> Changes:
    changes: Changes = {"arrivals": _faster(spec.arrivals, factor)}
    if spec.num_sessions is not None:
        changes["num_sessions"] = max(1, round(spec.num_sessions * factor))
    return changes


def _closed_loop(spec: ClosedLoopWorkload, factor: float) -> Changes:
    clients = max(1, round(spec.concurrency * factor))
    more = max(1.0, clients / spec.concurrency)
    return {
        "concurrency": clients,
        "num_requests": math.ceil(spec.num_requests * more),
        "warmup_requests": math.ceil(spec.warmup_requests * more),
    }


def _shared_prefix(spec: SharedPrefixWorkload, factor: float) -> Changes:
    stages = [stage.model_dump(mode="json", exclude_unset=True) for stage in spec.stages]
    return {"stages": [{**stage, "rate": stage["rate"] * factor} for stage in stages]}


def _faster(arrivals: Arrivals, factor: float) -> Changes:
    data = arrivals.model_dump(mode="json", exclude_unset=True)
    if isinstance(arrivals, StagedArrivals):
        stages = [{**stage, "rate": stage["rate"] * factor} for stage in data["stages"]]
        return {**data, "stages": stages}
    return {**data, "rate": data["rate"] * factor}


_SCALED: dict[type, Callable[[Any, float], Changes]] = {
    TraceWorkload: _trace,
    SyntheticWorkload: _synthetic,
    ClosedLoopWorkload: _closed_loop,
    SessionWorkload: _sessions,
    SharedPrefixWorkload: _shared_prefix,
}
