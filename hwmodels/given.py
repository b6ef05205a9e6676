"""A profile that a user names, and the GPU that it was measured on, known here or not."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hwmodels.gpus import GPUS
from hwmodels.links import LINKS
from hwmodels.profile import HardwareProfile, ProfileError, read_profile
from hwmodels.spec import GpuSpec, NodeSpec

DRY_RUN = "dry-run"
"""Engine of profiles whose durations nobody measured."""

_NODE = {"num_gpus": 1, "link": "pcie4", "host_link": "pcie4", "source": "assumed: one GPU on PCIe"}
_TEXTS = ("name", "title", "architecture")
_COUNTS = ("memory_bytes", "visible_memory_bytes", "num_sms", "l2_bytes", "l2_segments")
_RATES = ("hbm_bytes_per_s", "boost_hz")
_POWERS = ("power_w", "idle_power_w")
"""Facts that a profile may leave out."""


@dataclass(frozen=True, slots=True)
class GivenProfile:
    """A profile file, whole in memory; two are equal if their files are.

    Attributes:
        profile: all its tables read, so that it goes to other processes without its file.
        sha256: of the file.
        gpu: the part that it was measured on.
    """

    profile: HardwareProfile = field(compare=False)
    sha256: str
    gpu: GpuSpec = field(compare=False)

    @property
    def pretended(self) -> bool:
        """Whether its durations are those of a dry run."""
        return self.profile.engine == DRY_RUN


def read_given(path: Path) -> GivenProfile:
    """Return the kernel profile in a file.

    Raises:
        ProfileError: it is damaged, of another kind, or of a GPU that neither is known nor
            described in it; one line.
    """
    profile = read_profile(path)
    if profile.kind != "kernels":
        raise ProfileError(f"{path}: holds {profile.kind}, not kernels")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        return GivenProfile(profile, sha256, gpu_of(profile))
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from None


def gpu_of(profile: HardwareProfile) -> GpuSpec:
    """Return the part of a profile: of `hwmodels.gpus`, else as its `facts["gpu"]` describe it.

    Raises:
        ProfileError: there is neither, or the description lacks something.
    """
    known = GPUS.get(profile.gpu)
    if known is not None:
        return known
    facts = profile.facts.get("gpu")
    if not isinstance(facts, Mapping):
        raise ProfileError(f"GPU {profile.gpu!r} is not known here, and the profile does not say")
    return _described(profile.gpu, facts)


def _described(name: str, told: Mapping[str, Any]) -> GpuSpec:
    facts = dict(told)
    assumed = {str(fact) for fact in facts.get("assumed") or ()}
    if not facts.get("node"):
        facts["node"] = _NODE
        assumed.add("node")
    try:
        plain: dict[str, Any] = {key: str(facts[key]) for key in _TEXTS}
        plain |= {key: _above_zero(key, facts[key], int) for key in _COUNTS}
        plain |= {key: _above_zero(key, facts[key], float) for key in _RATES}
        plain |= {
            key: _above_zero(key, facts[key], float)
            for key in _POWERS
            if facts.get(key) is not None
        }
        spec = GpuSpec(
            **plain,
            compute_capability=_pair(facts["compute_capability"]),
            flops_per_s={
                str(dtype): _above_zero("flops_per_s", rate, float)
                for dtype, rate in facts["flops_per_s"].items()
            },
            node=NodeSpec(**facts["node"]),
            sources={"": f"told by the profile of {name}", **(facts.get("sources") or {})},
            assumed=frozenset(assumed),
        )
    except KeyError as error:
        raise ProfileError(f"facts of the GPU lack {error.args[0]!r}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ProfileError(f"facts of the GPU cannot be read ({error})") from None
    unknown = sorted(set(facts) - {one.name for one in fields(GpuSpec)})
    if unknown:
        raise ProfileError(f"facts of the GPU hold {unknown[0]!r}, which no GPU has")
    return _checked(name, spec)


def _checked(name: str, spec: GpuSpec) -> GpuSpec:
    if spec.name != name:
        raise ProfileError(f"facts are of the GPU {spec.name!r}, measurements of {name!r}")
    if "bf16" not in spec.flops_per_s:
        raise ProfileError("facts of the GPU lack the rate of bf16 in 'flops_per_s'")
    for link in (spec.node.link, spec.node.host_link):
        if link not in LINKS:
            known = ", ".join(LINKS)
            raise ProfileError(f"facts of the GPU name the link {link!r}; known are {known}")
    return spec


def _pair(value: Any) -> tuple[int, int]:
    major, minor = value
    return int(major), int(minor)


def _above_zero(key: str, value: Any, kind: type[int] | type[float]) -> Any:
    number = kind(value)
    if isinstance(value, bool) or not math.isfinite(number) or number <= 0:
        raise ValueError(f"{key} is {value!r}; a number above 0 is needed")
    return number
