"""The pools of a scenario: each is a scenario of its own but for its network and its requests."""

from typing import Any

from twin.cluster import ClusterSpec, PoolSpec
from twin.errors import InputError
from twin.load.validation import validate
from twin.policy import EnginePolicy
from twin.scenario import ScenarioFile


def pool_files(file: ScenarioFile, where: str) -> list[tuple[str, PoolSpec, ScenarioFile]]:
    """Return (where it stands, pool, the file that a scenario of its replicas alone would have).

    Raises:
        InputError: a pool's policy and the scenario's do not go together, or two have one name.
    """
    found, names = [], set[str]()
    for index, given in enumerate(file.cluster.pools or ()):
        here = f"{where}, cluster.pools[{index}]"
        pool = given.model_copy(update={"name": given.name or f"pool-{index}"})
        if pool.name in names:
            raise InputError(f"two pools are called {pool.name!r}", where=here)
        names.add(pool.name)
        alone = file.model_copy(
            update={
                "gpu": pool.gpu or file.gpu,
                "parallelism": pool.parallelism or file.parallelism,
                "policy": _merged(file.policy, pool.policy, here),
                # The number was checked with the pool; 0 is refused of a scenario without pools.
                "cluster": ClusterSpec.model_construct(replicas=pool.replicas),
            }
        )
        found.append((here, pool, alone))
    return found


def _merged(base: EnginePolicy, own: EnginePolicy | None, where: str) -> EnginePolicy:
    """Return a policy with what a pool says of it in place of what the scenario says."""
    if own is None:
        return base
    theirs = base.model_dump(exclude_unset=True)
    return validate(EnginePolicy, _over(theirs, own.model_dump(exclude_unset=True)), where)


def _over(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    both = {**base, **own}
    for key, value in own.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            both[key] = _over(base[key], value)
    return both
