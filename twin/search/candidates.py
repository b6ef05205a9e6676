"""From a candidate to a scenario file."""

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
    return variant(problem.file, candidate, where=problem.where)


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
