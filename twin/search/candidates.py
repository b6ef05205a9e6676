"""From a candidate to a scenario file."""

from typing import Any

from twin.load.variant import variant
from twin.scenario import ScenarioFile
from twin.search.knob import Candidate, Value
from twin.search.problem import SearchProblem

RETRY_KIND = "clients.retry.kind"


def file_of(problem: SearchProblem, candidate: Candidate) -> ScenarioFile:
    """Return the scenario file of a candidate.

    Raises:
        InputError: its values do not go together.
    """
    changes: dict[str, Any] = dict(candidate)
    kind = changes.pop(RETRY_KIND, None)
    if kind is not None:
        changes["clients.retry"] = _retry(problem.file, kind)
    if changes.get("policy.eviction", "ttl") != "ttl":
        changes["policy.eviction_ttl_s"] = None  # it would have no effect, and is refused then
    return variant(problem.file, changes, where=problem.where)


def _retry(file: ScenarioFile, kind: Any) -> dict[str, Any]:
    """Return a retry policy of another kind, with as many attempts and as long a delay."""
    own: dict[str, Any] = (
        {} if file.clients is None else file.clients.retry.model_dump(exclude_unset=True)
    )
    shared: dict[str, Any] = {k: own[k] for k in ("max_attempts", "delay_s") if k in own}
    return {"kind": kind} if kind == "none" else {"kind": kind, **shared}


def value_in(file: ScenarioFile, key: str) -> Value:
    """Return what a scenario file has at a dotted key; None: nothing.

    A part that is given by its `kind` alone, such as a router, is its kind's name.
    """
    node: object = file
    for part in key.split("."):
        node = getattr(node, part, None)
    if isinstance(node, bool | int | float | str):
        return node
    kind = getattr(node, "kind", None)
    return kind if isinstance(kind, str) else None


def gpus_of(file: ScenarioFile) -> int:
    """Return the most GPUs that a scenario's replicas take at a time."""
    cluster, total = file.cluster, 0
    for pool in cluster.pools or (cluster,):
        own = getattr(pool, "parallelism", None) or file.parallelism
        most = pool.replicas if pool.autoscaler is None else pool.autoscaler.max_replicas
        total += most * own.tp * own.pp * own.dp
    return total
