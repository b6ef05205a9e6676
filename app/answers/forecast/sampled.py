"""The first requests of a workload, so that a page need not draw ten million of them."""

from dataclasses import replace
from typing import Any

from twin.workload.build import LoadedWorkload
from twin.workload.spec import SharedPrefixWorkload

MOST = 20_000
"""Requests, or sessions, that are drawn: half a second's work."""


def first_of(workload: LoadedWorkload) -> LoadedWorkload:
    """Return a workload that ends after `MOST` requests or sessions, if it did not before.

    Stages of a shared-prefix load are shortened alike instead. A trace is left alone: it is read
    already, and its size was bounded then.
    """
    spec = workload.spec
    changed: dict[str, Any] = {}
    for name in ("num_requests", "num_sessions"):
        if name in type(spec).model_fields:
            changed[name] = min(getattr(spec, name) or MOST, MOST)
    if isinstance(spec, SharedPrefixWorkload):
        total = sum(stage.num_requests for stage in spec.stages)
        if total <= MOST:
            return workload
        changed["stages"] = tuple(
            stage.model_copy(
                update={"duration_s": max(stage.duration_s * MOST / total, 1 / stage.rate)}
            )
            for stage in spec.stages
        )
    if all(getattr(spec, name) == value for name, value in changed.items()):
        return workload
    return replace(workload, spec=spec.model_copy(update=changed))
