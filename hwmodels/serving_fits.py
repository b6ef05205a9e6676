"""Costs of serving engines, fitted to measured closed-loop rows.

Written by `twin-calibrate accuracy CSV --fit`; do not edit by hand. What the numbers mean stands in
`calibrate/accuracy/costs.py`.
"""

from typing import Any

SERVING_FITS: dict[str, Any] = {"fitted_on": "", "groups": [], "values": {}, "left_out": {}}
