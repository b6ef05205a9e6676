"""`ServingCosts`: every fitted number that a prediction of a measured row depends on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from hwmodels.host import HostCosts
from hwmodels.measured.scales import CostScales
from hwmodels.scaled import Corrections

_SCALES = tuple(f.name for f in fields(CostScales))
_CORRECTIONS = tuple(f.name for f in fields(Corrections) if f.name != "scales")
_HOST = (
    "gap_s", "gap_per_seq_s", "api_s", "no_full_graph_layer_s", "no_full_graph_moe_layer_s",
    "eager_op_s", "front_end_event_s",
)  # fmt: skip
NAMES = ("step_s", "seq_s", "turnaround_s", *_HOST, *_CORRECTIONS, *_SCALES)
"""What a fit may turn."""


@dataclass(frozen=True, slots=True)
class ServingCosts:
    """Costs of one engine under one load generator.

    Attributes:
        host: the engine's host costs.
        corrections: of measured kernel tables.
        turnaround_s: from an answer until its client's next request is sent.
    """

    host: HostCosts
    corrections: Corrections = field(default_factory=Corrections)
    turnaround_s: float = 0.0

    def with_values(self, values: Mapping[str, float]) -> "ServingCosts":
        """Return these costs with some of the numbers of `NAMES` replaced.

        `step_s` and `seq_s` are split evenly between deciding a step and processing its output:
        the measured rows cannot tell the halves apart.
        """
        host, corrections = self.host, self.corrections
        scales = replace(corrections.scales, **_some(values, _SCALES))
        if "step_s" in values:
            half = values["step_s"] / 2
            host = replace(host, schedule_s=half, update_s=half)
        if "seq_s" in values:
            half = values["seq_s"] / 2
            host = replace(host, schedule_per_seq_s=half, update_per_seq_s=half)
        return ServingCosts(
            replace(host, **_some(values, _HOST)),
            replace(corrections, scales=scales, **_some(values, _CORRECTIONS)),
            values.get("turnaround_s", self.turnaround_s),
        )


def _some(values: Mapping[str, float], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}
