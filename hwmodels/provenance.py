"""In one phrase: what the durations of a GPU rest on."""

from hwmodels.efficiency import EFFICIENCIES
from hwmodels.given import GivenProfile
from hwmodels.measured.tables import variants
from hwmodels.profile import HardwareProfile, find_shipped, open_profile, shipped_profiles

PRETENDED = "durations are pretended: they come from a dry run"
"""What every forecast on a dry run's profile says."""

_FAMILIES = ("gemm", "prefill", "decode", "launch")
_JUDGED = ("gemm", "prefill", "decode", "all_reduce")


def durations_rest_on(
    gpu_name: str, engine: str = "vllm", engine_version: str | None = None
) -> str:
    """Return what prices a GPU's operations under an engine.

    For example `kernels measured under vllm 0.24.0; held-out error, median/P90 %: gemm 2.6/9.7,
    ...`, or `roofline, unmeasured: datasheet with efficiencies of h100_sxm`.

    Raises:
        KeyError: there is no such GPU.
    """
    path = find_shipped(gpu_name, engine, engine_version)
    if path is not None:
        return _measured(open_profile(path))
    layers = [profile for profile in profiles_of(gpu_name) if profile.kind == "layers"]
    known = [f"layers of {p.facts.get('llm')} measured under {p.engine}" for p in layers]
    return "; ".join([*known, _roofline(gpu_name)])


def given_rests_on(given: GivenProfile) -> str:
    """Return what a profile that a user names rests on, with its name and digest."""
    said = PRETENDED if given.pretended else _measured(given.profile)
    return f"{said} (profile {given.profile.name}, SHA-256 {given.sha256[:12]})"


def decode_kv_dtypes(
    gpu_name: str,
    engine: str = "vllm",
    engine_version: str | None = None,
    given: HardwareProfile | None = None,
) -> frozenset[str]:
    """Return the KV dtypes of which the profile that prices a GPU holds decode attention."""
    path = None if given else find_shipped(gpu_name, engine, engine_version)
    profile = open_profile(path) if path else given
    names = () if profile is None else variants(profile.tables, "decode")
    return frozenset(name.rpartition(".")[2] for name in names)


def profiles_of(gpu_name: str) -> list[HardwareProfile]:
    """Return the shipped profiles of a GPU, tables unread."""
    opened = (
        open_profile(path)
        for name, path in shipped_profiles().items()
        if name.startswith(f"{gpu_name}-")
    )
    return [profile for profile in opened if profile.gpu == gpu_name]


def _measured(profile: HardwareProfile) -> str:
    errors = [
        f"{family} {profile.held_out[family].median_pct:.1f}/{profile.held_out[family].p90_pct:.1f}"
        for family in _JUDGED
        if family in profile.held_out
    ]
    text = f"kernels measured under {profile.engine} {profile.engine_version}"
    if not errors:
        return text
    return f"{text}; held-out error, median/P90 %: {', '.join(errors)}"


def _roofline(gpu_name: str) -> str:
    fits = {family: getattr(EFFICIENCIES[gpu_name], family) for family in _FAMILIES}
    own = [family for family, fit in fits.items() if fit.measured]
    borrowed = [f"{family} ({fit.fitted_on})" for family, fit in fits.items() if not fit.measured]
    if not own:
        lenders = sorted({fit.fitted_on for fit in fits.values()})
        return f"roofline, unmeasured: datasheet with efficiencies of {', '.join(lenders)}"
    text = "roofline, fitted on this GPU: " + ", ".join(own)
    return f"{text}; borrowed: {', '.join(borrowed)}" if borrowed else text
