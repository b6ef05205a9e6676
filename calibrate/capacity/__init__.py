"""How well the capacity model meets measured KV-cache sizes, and its fit to them."""

from calibrate.capacity.fit import fit_all, literal
from calibrate.capacity.holdout import leave_one_out
from calibrate.capacity.predict import Prediction, median_error, predict, worst_error
from calibrate.capacity.rows import CapacityRow, read_rows, total_memory_bytes

__all__ = [
    "CapacityRow",
    "Prediction",
    "fit_all",
    "leave_one_out",
    "literal",
    "median_error",
    "predict",
    "read_rows",
    "total_memory_bytes",
    "worst_error",
]
