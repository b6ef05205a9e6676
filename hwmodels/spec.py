"""Facts of a part as its vendor or a driver states them, each with its source.

Only facts stand here. What kernels reach of them is in `hwmodels.efficiency`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """A connection between GPUs, or between a GPU and its host.

    Attributes:
        name: key in `hwmodels.links.LINKS`.
        kind: "nvlink" or "pcie".
        bytes_per_s: raw rate of one direction, per GPU.
        sustained_bytes_per_s: what large copies reach, one direction.
        fully_connected: every pair of GPUs has the full rate (NVSwitch).
        sources: field name to where the fact comes from.
        assumed: names of facts that nobody measured on this part.
    """

    name: str
    kind: str
    bytes_per_s: float
    sustained_bytes_per_s: float
    fully_connected: bool
    sources: Mapping[str, str] = field(hash=False, compare=False)
    assumed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """The server a GPU usually comes in: how many, and what links them."""

    num_gpus: int
    link: str
    host_link: str
    source: str


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One GPU type.

    Attributes:
        name: key in `hwmodels.gpus.GPUS`.
        architecture: "ampere", "ada", "hopper" or "blackwell".
        flops_per_s: dense tensor-core rate by dtype with FP32 (or INT32) accumulation; a dtype
            that is absent has no tensor-core path.
        hbm_bytes_per_s: datasheet memory bandwidth.
        memory_bytes: datasheet capacity (vendors' "GB" of GPU memory are GiB).
        visible_memory_bytes: what the driver and PyTorch report, the total of the KV-capacity
            identity.
        l2_segments: parts of the L2; data read by all SMs is replicated in each.
        boost_hz: highest SM clock.
        sources: field name to where the fact comes from; a field without its own entry falls
            under the key "".
        assumed: names of facts that are neither from a datasheet nor measured.
        power_w: most the part may draw for long (TDP or TGP); None: not told.
        idle_power_w: drawn with an engine loaded (a CUDA context keeps the clocks up) and nothing
            running; None: not told.
    """

    name: str
    title: str
    architecture: str
    compute_capability: tuple[int, int]
    flops_per_s: Mapping[str, float] = field(hash=False)
    hbm_bytes_per_s: float
    memory_bytes: int
    visible_memory_bytes: int
    num_sms: int
    l2_bytes: int
    l2_segments: int
    boost_hz: float
    node: NodeSpec
    sources: Mapping[str, str] = field(hash=False, compare=False)
    assumed: frozenset[str] = frozenset()
    power_w: float | None = None
    idle_power_w: float | None = None

    def source_of(self, fact: str) -> str:
        """Return where a fact comes from."""
        return self.sources.get(fact) or self.sources[""]
