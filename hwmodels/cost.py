"""From the name of a GPU to who can price its operations."""

from hwmodels.gpus import GPUS
from hwmodels.ops import CostModel
from hwmodels.roofline import RooflineCostModel


def cost_model_for(gpu_name: str) -> CostModel:
    """Return the cost model of a GPU of `hwmodels.gpus.GPUS`.

    Raises:
        KeyError: there is no such GPU.
    """
    return RooflineCostModel(GPUS[gpu_name])
