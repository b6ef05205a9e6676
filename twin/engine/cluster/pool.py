"""A pool: replicas of one kind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twin.cluster import AutoscalerSpec
from twin.engine.serving import ServingInstance
from twin.request import Request

Admission = Callable[[Request], bool]
"""Whether the server takes a request (it answers 400 otherwise)."""


def nothing() -> None:
    """Replicas that the clock drives are always there."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What replicas of one kind have in common.

    Attributes:
        replicas: how many there are at the start.
        build: makes a replica of (its number, the number of its first engine core).
        accepts: whether its server takes a request.
        cores: engine cores a replica.
        gpus: GPUs a replica.
        startup_s: from the decision to start a replica until it takes requests.
        autoscaler: how many there are later; None: as many as at the start.
        name: how reports call it.
        sync: lets passive replicas come to the present instant, before they are looked at.
    """

    replicas: int
    build: Callable[[int, int], ServingInstance]
    accepts: Admission
    cores: int = 1
    gpus: int = 1
    startup_s: float = 0.0
    autoscaler: AutoscalerSpec | None = None
    name: str = ""
    sync: Callable[[], None] = nothing


def pool_of(replicas: Sequence[ServingInstance], accepts: Admission) -> Pool:
    """Return the pool of replicas that stand already."""
    cores = len(replicas[0].engines) if replicas else 1
    return Pool(len(replicas), lambda number, _: replicas[number], accepts, cores)
