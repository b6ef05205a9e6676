"""Durations from measured tables: interpolation inside their hull, physics outside."""

from hwmodels.measured.model import MeasuredCostModel
from hwmodels.measured.scales import CostScales

__all__ = ["CostScales", "MeasuredCostModel"]
