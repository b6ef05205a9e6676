"""From the name of a GPU and an engine to who can price operations."""

from functools import lru_cache
from pathlib import Path

from hwmodels.given import GivenProfile
from hwmodels.gpus import GPUS
from hwmodels.measured import MeasuredCostModel
from hwmodels.ops import CostModel
from hwmodels.profile import find_shipped, open_profile
from hwmodels.roofline import RooflineCostModel


def cost_model_for(
    gpu_name: str, engine: str = "vllm", engine_version: str | None = None
) -> CostModel:
    """Return the cost model of a GPU of `hwmodels.gpus.GPUS` under an engine.

    Measured tables of that GPU and engine price it, those of the nearest version if there are
    several; a GPU that has none gets the roofline.

    Raises:
        KeyError: there is no such GPU.
    """
    gpu = GPUS[gpu_name]
    path = find_shipped(gpu_name, engine, engine_version)
    return RooflineCostModel(gpu) if path is None else _measured(gpu_name, path)


# Shipped files don't change while the program runs, and a search asks for the same one at every
# step: what was unpacked and worked out is kept.
@lru_cache(maxsize=4)
def _measured(gpu_name: str, path: Path) -> MeasuredCostModel:
    return MeasuredCostModel(open_profile(path), GPUS[gpu_name])


@lru_cache(maxsize=4)
def given_cost_model(given: GivenProfile) -> MeasuredCostModel:
    """Return the cost model of a profile that a user names."""
    return MeasuredCostModel(given.profile, given.gpu)
