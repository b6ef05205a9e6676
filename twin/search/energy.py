"""How much energy GPUs take: an estimate from their stated power, not a measurement."""

import numpy as np

from hwmodels.spec import GpuSpec
from twin.engine.result import Floats, SimulationResult
from twin.errors import InputError
from twin.scenario import Scenario, pools_of

FORMULA = "idle power x paid GPU seconds + (power limit - idle power) x busy GPU seconds"
"""The estimate in words. A busy GPU is taken to draw its limit, which steps that wait for memory
do not reach, so it is an upper one; hosts, networks and cooling are not in it."""


def energy_j(scenario: Scenario, result: SimulationResult) -> float:
    """Return the joules that all GPUs of a run take, by `FORMULA`.

    Args:
        scenario: what was run.
        result: its result; of several pools with every step recorded.

    Raises:
        InputError: a GPU's power is not known.
    """
    fleet = result.fleet
    if fleet is None:
        raise ValueError("a simulated result knows its replicas")
    pools = pools_of(scenario)
    power_w = np.array([power_of(pool.scenario.gpu) for pool in pools])
    idle_w, limit_w = power_w[fleet.pool].T
    per_core = np.repeat(fleet.gpus / fleet.cores, fleet.cores)
    above_w = np.repeat(limit_w - idle_w, fleet.cores)
    idle_j = float(idle_w @ (fleet.paid_s * fleet.gpus))
    if len(pools) == 1:  # all cores are alike
        busy_s = sum(result.time_by_source_s.values())
        return idle_j + (float(above_w[0] * per_core[0]) * busy_s if above_w.size else 0.0)
    return idle_j + float((above_w * per_core) @ _busy_s(result))


def power_of(gpu: GpuSpec) -> tuple[float, float]:
    """Return (idle, limit) power of a GPU, watts.

    Raises:
        InputError: one of them is not known.
    """
    if gpu.idle_power_w is None or gpu.power_w is None:
        raise InputError(
            f"the power of {gpu.name} is not known", remedy="choose another objective than energy"
        )
    return gpu.idle_power_w, gpu.power_w


def _busy_s(result: SimulationResult) -> Floats:
    """Return how long each engine core was busy, shape (cores,)."""
    if result.stride != 1:
        raise ValueError("energy of several pools needs every step recorded")
    steps = result.steps
    cores = np.arange(result.replicas)
    return np.array([float(steps.busy_s[steps.replica == core].sum()) for core in cores])
