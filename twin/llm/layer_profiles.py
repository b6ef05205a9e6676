"""Which layer profile speaks of a network on a GPU."""

from hwmodels.profile import (
    HardwareProfile,
    nearest_version,
    open_profile,
    profile_name,
    read_profile,
    shipped_profiles,
    version_numbers,
)
from twin.llm.arch import ModelArch
from twin.llm.layer_timer import LayerTimer
from twin.llm.lowering import Precision


def layer_profile_for(
    gpu: str, arch: ModelArch, engine: str, version: str, tp: int = 1
) -> HardwareProfile | None:
    """Return the shipped layer profile of a network on a GPU, the nearest version; None: none."""
    prefix = profile_name(gpu, engine, "")
    found = {}
    for name, path in shipped_profiles().items():
        if not name.startswith(prefix):
            continue
        profile = open_profile(path)
        facts = profile.facts
        if profile.kind == "layers" and (facts.get("llm"), facts.get("tp")) == (arch.name, tp):
            found[version_numbers(profile.engine_version)] = path
    if not found:
        return None
    return read_profile(found[nearest_version(version_numbers(version), found)])


def applies(profile: HardwareProfile, precision: Precision, *, eager: bool) -> bool:
    """Whether a profile speaks of these dtypes, and of an engine that compiles."""
    dtypes = {precision.weight_dtype, precision.compute_dtype, precision.kv_dtype}
    return not eager and dtypes == {profile.facts.get("variant", "bf16")}


def layer_timer_for(
    gpu: str, arch: ModelArch, engine: str, version: str, capture_sizes: tuple[int, ...] = ()
) -> LayerTimer | None:
    """Return the timer over the shipped layer profile of a network on one GPU; None: none."""
    profile = layer_profile_for(gpu, arch, engine, version)
    return None if profile is None else LayerTimer(profile, arch, capture_sizes=capture_sizes)
