"""Which GPU this is: a part of `hwmodels.gpus`, or the facts that the driver tells of another.

A GPU's facts are the keywords of `hwmodels.spec.GpuSpec` as plain data, so that a profile can
carry them (`facts["gpu"]`) and a GPU that nobody wrote down is priced all the same.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hwmodels.gpus import GPUS
from hwmodels.spec import GpuSpec, NodeSpec

Facts = dict[str, Any]

_NAMES: dict[str, re.Pattern[str]] = {
    "a100_sxm": re.compile(r"A100-SXM\d*-80GB"),
    "h100_sxm": re.compile(r"H100 (SXM\d*|80GB HBM3)"),
    "h200_sxm": re.compile(r"H200(?! NVL)"),
    "b200_sxm": re.compile(r"\bB200\b"),
    "l40s": re.compile(r"\bL40S\b"),
    "rtx_4090": re.compile(r"RTX 4090(?! (D|Laptop))"),
    "rtx_pro_6000": re.compile(r"RTX PRO 6000 Blackwell(?! Max-Q)"),
}
"""What the driver calls the parts of `hwmodels.gpus`."""

_MEMORY_SPREAD = 0.1
"""How far the memory told may lie from the part's: a slice of a GPU has less."""

_ARCHITECTURES = {(8, 9): "ada", 8: "ampere", 9: "hopper", 10: "blackwell", 12: "blackwell"}

# Dense bf16 operations with FP32 accumulation a clock and SM: flops_per_s / (num_sms * boost_hz) of
# the parts above, and of RTX 3090 (GA102 whitepaper). FP8 and INT8 are twice as fast.
_FLOPS_PER_CLOCK = {(8, 0): 2048, (8, 6): 512, (8, 9): 1024, (9, 0): 4096, 10: 8192, 12: 1024}
_FP8_FROM = (8, 9)


@dataclass(frozen=True, slots=True)
class Properties:
    """What PyTorch and the driver tell of a GPU; zero: they do not.

    Attributes:
        memory_clock_hz: of the memory's clock; data moves at both edges of it.
    """

    name: str
    capability: tuple[int, int]
    num_sms: int
    l2_bytes: int
    memory_bytes: int
    boost_hz: float = 0.0
    memory_clock_hz: float = 0.0
    memory_bus_bits: int = 0


def known_gpu(found: Properties) -> GpuSpec | None:
    """Return the part of `hwmodels.gpus` that this is; a slice of one is none."""
    for name, pattern in _NAMES.items():
        spec = GPUS[name]
        whole = found.num_sms == spec.num_sms
        near = abs(found.memory_bytes / spec.visible_memory_bytes - 1) <= _MEMORY_SPREAD
        if pattern.search(found.name) and whole and near:
            return spec
    return None


def facts_of(found: Properties) -> Facts:
    """Return a GPU's facts: those written down, else those told, each with its source."""
    spec = known_gpu(found)
    return as_facts(spec) if spec is not None else _told(found)


def as_facts(spec: GpuSpec) -> Facts:
    """Return a part's facts as plain data that JSON can hold."""
    return {
        **{name: getattr(spec, name) for name in spec.__dataclass_fields__},
        "compute_capability": list(spec.compute_capability),
        "flops_per_s": dict(spec.flops_per_s),
        "node": asdict(spec.node),
        "sources": dict(spec.sources),
        "assumed": sorted(spec.assumed),
    }


def spec_of(facts: Mapping[str, Any]) -> GpuSpec:
    """Return the part that facts describe; the inverse of `as_facts`."""
    major, minor = facts["compute_capability"]
    return GpuSpec(
        **{
            **facts,
            "compute_capability": (int(major), int(minor)),
            "node": NodeSpec(**facts["node"]),
            "assumed": frozenset(facts["assumed"]),
        }
    )


def slug(name: str) -> str:
    """Return a GPU's name as files and scenarios spell it: `rtx_3090`."""
    words = re.sub(r"^(NVIDIA|AMD)\s+|\bGeForce\b|\bGeneration\b", "", name).lower()
    return re.sub(r"[^a-z0-9.]+", "_", words).strip("_") or "gpu"


def _told(found: Properties) -> Facts:
    sources = {"": "told by the driver, through PyTorch"}
    assumed = {"flops_per_s", "l2_segments", "node"}
    bandwidth = 2 * found.memory_clock_hz * found.memory_bus_bits / 8
    sources["hbm_bytes_per_s"] = "memory clock × bus width, both told by the driver"
    if not bandwidth:
        # Filled in by the fit, from the fastest stream that was measured.
        sources["hbm_bytes_per_s"] = "not told by the driver"
        assumed.add("hbm_bytes_per_s")
    if not found.boost_hz:
        assumed.add("boost_hz")
        sources["boost_hz"] = "not told by the driver: assumed"
    clock = found.boost_hz or 1.5e9
    per_clock = _by_capability(_FLOPS_PER_CLOCK, found.capability, 1024)
    peak = float(per_clock * found.num_sms * clock)
    eight_bit = {"int8": 2 * peak} | ({"fp8": 2 * peak} if found.capability >= _FP8_FROM else {})
    sources |= {
        "flops_per_s": f"assumed: {per_clock} bf16 operations a clock and SM, as parts of this "
        f"compute capability; {found.num_sms} SMs at {clock / 1e6:.0f} MHz",
        "l2_segments": "assumed: one",
        "memory_bytes": "as visible",
        "node": "assumed: one GPU on PCIe Gen4",
    }
    return {
        "name": slug(found.name),
        "title": found.name,
        "architecture": _by_capability(_ARCHITECTURES, found.capability, "hopper"),
        "compute_capability": list(found.capability),
        "flops_per_s": {"bf16": peak, **eight_bit},
        "hbm_bytes_per_s": bandwidth,
        "memory_bytes": found.memory_bytes,
        "visible_memory_bytes": found.memory_bytes,
        "num_sms": found.num_sms,
        "l2_bytes": found.l2_bytes,
        "l2_segments": 1,
        "boost_hz": clock,
        "node": {
            "num_gpus": 1, "link": "pcie4", "host_link": "pcie4", "source": sources["node"],
        },
        "sources": sources,
        "assumed": sorted(assumed),
    }  # fmt: skip


def _by_capability(table: Mapping[Any, Any], capability: tuple[int, int], other: Any) -> Any:
    return table.get(capability, table.get(capability[0], other))


def properties_of(device: Any) -> Properties:
    """Return what PyTorch tells of a CUDA device."""
    import torch

    told = torch.cuda.get_device_properties(device)
    return Properties(
        name=told.name,
        capability=(told.major, told.minor),
        num_sms=told.multi_processor_count,
        l2_bytes=told.L2_cache_size,
        memory_bytes=told.total_memory,
        boost_hz=1e3 * getattr(told, "clock_rate", 0),
        memory_clock_hz=1e3 * getattr(told, "memory_clock_rate", 0),
        memory_bus_bits=getattr(told, "memory_bus_width", 0),
    )
