"""`ServingCosts`: every fitted number that a prediction of a measured row depends on."""

from dataclasses import dataclass, field, replace

from hwmodels.host import HostCosts
from hwmodels.measured.scales import CostScales


@dataclass(frozen=True, slots=True)
class ServingCosts:
    """Costs of one engine under one load generator.

    Attributes:
        host: the engine's host costs.
        scales: factors by kernel family.
        turnaround_s: from an answer until its client's next request is sent.
    """

    host: HostCosts
    scales: CostScales = field(default_factory=CostScales)
    turnaround_s: float = 0.0

    def with_values(self, values: dict[str, float]) -> "ServingCosts":
        """Return these costs with some of the numbers of `NAMES` replaced.

        `step_s` and `seq_s` are split evenly between deciding a step and processing its output:
        the measured rows cannot tell the halves apart.
        """
        host = self.host
        scales = replace(self.scales, **{n: v for n, v in values.items() if n in _SCALES})
        if "step_s" in values:
            half = values["step_s"] / 2
            host = replace(host, schedule_s=half, update_s=half)
        if "seq_s" in values:
            half = values["seq_s"] / 2
            host = replace(host, schedule_per_seq_s=half, update_per_seq_s=half)
        kept = {name: value for name, value in values.items() if name in _HOST}
        return ServingCosts(
            replace(host, **kept),  # type: ignore[arg-type]
            scales,
            values.get("turnaround_s", self.turnaround_s),
        )


_SCALES = ("gemm", "prefill", "decode", "collective", "elementwise", "experts")
_HOST = (
    "gap_s", "gap_per_seq_s", "api_s", "no_full_graph_layer_s", "eager_op_s", "front_end_event_s",
    "product_overlap_s",
)  # fmt: skip
NAMES = ("step_s", "seq_s", "turnaround_s", *_HOST, *_SCALES)
"""What a fit may turn."""
