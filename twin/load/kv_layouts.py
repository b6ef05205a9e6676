"""Where the KV of a scenario lies: what cannot be simulated, and what its seconds rest on."""

from hwmodels.given import GivenProfile
from hwmodels.memory.fits import MemoryFit, memory_fit_for
from hwmodels.memory.tlb import missing
from hwmodels.profile import HardwareProfile, ProfileError
from twin.errors import InputError
from twin.scenario import ScenarioFile

_DECIDING = ("tlb_l3_reach_bytes", "walk_cycles", "walkers")


def check_layout(file: ScenarioFile, layers: HardwareProfile | None, where: str) -> None:
    """Measured layers hold one layout: another one would be compared with something else.

    Raises:
        InputError: the scenario has both.
    """
    if layers is not None and not file.kv_layout.costs_nothing:
        raise InputError(
            f"kv_layout is not simulated with measured layers ({layers.name})",
            where=f"{where}, kv_layout",
            remedy="leave it out, or choose a GPU whose kernels are priced one by one",
        )


def layout_notes(file: ScenarioFile, given: GivenProfile | None) -> list[str]:
    """Return the caveat of a KV layout that costs something; nothing for the default.

    Raises:
        InputError: the constants of the profile that the scenario names cannot be used.
    """
    spec, engine = file.kv_layout, file.engine
    if spec.costs_nothing:
        return []
    profile = None if given is None else given.profile
    try:
        fit = memory_fit_for(file.gpu, engine.name, engine.version, profile)
    except ProfileError as error:
        raise InputError(str(error), where="profile") from None
    rest = _rest_on(file.gpu, fit)
    unknown = missing(fit)
    if unknown:
        rest += f"; unknown and not charged: {', '.join(unknown)}"
    return [
        f"KV layout {spec.pools}, {spec.order}: address translation is added to attention where "
        f"it outlasts the kernel, and counts as HBM; {rest} (`twin memory` gives the interval)."
    ]


def _rest_on(gpu: str, fit: MemoryFit) -> str:
    """Return which deciding constants nobody measured, and which a dry run made up."""
    pretended = [name for name in _DECIDING if name in fit.pretended]
    priors = [name for name in _DECIDING if name not in fit.measured and name not in pretended]
    parts = [
        *([f"of {gpu} nobody measured {', '.join(priors)}"] if priors else []),
        *([f"pretended by a dry run: {', '.join(pretended)}"] if pretended else []),
    ]
    return "; ".join(parts) or "all measured"
