"""How much energy GPUs take: an estimate from their datasheets' power, not a measurement."""

from twin.engine.result import SimulationResult
from twin.scenario import Scenario, pools_of

_POWER_W = {"h100_sxm": 700.0, "h200_sxm": 700.0, "a100_sxm": 400.0, "b200_sxm": 1000.0}
_POWER_W |= {"l40s": 350.0, "rtx_4090": 450.0, "rtx_pro_6000": 600.0}


def energy_j(scenario: Scenario, result: SimulationResult) -> float:
    """Return joules of all GPUs over a run: power limit while busy."""
    pool = pools_of(scenario)[0].scenario
    gpus = pool.file.parallelism.tp * pool.file.parallelism.pp
    return _POWER_W[pool.gpu.name] * sum(result.time_by_source_s.values()) * gpus
