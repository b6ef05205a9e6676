"""From a scenario to where the KV of one rank lies, and to a cost model that charges for it."""

from hwmodels.memory.cost import LaidOutCostModel
from hwmodels.memory.fits import MemoryFit, memory_fit_for
from hwmodels.memory.layout import KvLayout
from hwmodels.ops import CostModel
from hwmodels.profile import ProfileError
from twin.errors import InputError
from twin.llm.kv_layout import KvPool, kv_layout
from twin.scenario import Scenario


def laid_out(scenario: Scenario, base: CostModel) -> CostModel:
    """Return a cost model that also charges what the scenario's KV layout costs, if it does."""
    if scenario.file.kv_layout.costs_nothing:
        return base
    fit = memory_fit_of(scenario)
    return LaidOutCostModel(base, layout_of(scenario), fit, scenario.gpu.boost_hz)


def memory_fit_of(scenario: Scenario) -> MemoryFit:
    """Return the constants of the memory hierarchy that a scenario's GPU has.

    Raises:
        InputError: the profile that it names holds none that can be used.
    """
    engine, own = scenario.file.engine, scenario.profile
    try:
        return memory_fit_for(
            scenario.gpu.name, engine.name, engine.version, own.profile if own else None
        )
    except ProfileError as error:
        raise InputError(str(error), where="profile") from None


def layout_of(scenario: Scenario) -> KvLayout:
    """Return where the KV of one rank of a scenario lies."""
    spec, parallelism = scenario.file.kv_layout, scenario.file.parallelism
    pool = KvPool(
        scenario.precision.kv_dtype,
        scenario.policy.block_size,
        scenario.num_gpu_blocks,
        parallelism.tp,
        parallelism.pp,
    )
    return kv_layout(scenario.arch, pool, pools=spec.pools, order=spec.order)
