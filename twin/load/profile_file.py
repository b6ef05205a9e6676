"""The hardware profile that a scenario names, and the GPU that it brings."""

from pathlib import Path

from hwmodels.given import GivenProfile, read_given
from hwmodels.gpus import GPUS
from hwmodels.profile import ProfileError
from hwmodels.spec import GpuSpec
from twin.errors import InputError
from twin.naming import lookup
from twin.scenario import ScenarioFile

_MEASURE = "`twin-calibrate measure` and `fit` make one"


def read_profile_file(file: ScenarioFile, base: Path, where: str) -> GivenProfile | None:
    """Return the profile that a scenario names; None: it names none.

    Args:
        file: the validated input.
        base: folder that a relative path starts from.
        where: how errors name the scenario.

    Raises:
        InputError: it cannot be used: damaged, of another kind, or of a GPU nobody describes.
    """
    if file.profile is None:
        return None
    path = base / file.profile
    try:
        if path.is_dir():
            raise ProfileError(f"{path}: is a folder, not a hardware profile")
        return read_given(path)
    except ProfileError as error:
        raise InputError(str(error), where=f"{where}, profile", remedy=_MEASURE) from None


def find_gpu(file: ScenarioFile, given: GivenProfile | None, where: str) -> GpuSpec:
    """Return the GPU that a scenario names.

    Raises:
        InputError: it is not known, or not the one that the profile was measured on.
    """
    if given is None:
        return lookup(GPUS, file.gpu, "GPU", where=where)
    gpu = lookup({**GPUS, given.gpu.name: given.gpu}, file.gpu, "GPU", where=where)
    if gpu.name != given.gpu.name:
        raise InputError(
            f"the GPU is {gpu.name}, but the profile was measured on {given.gpu.name}",
            where=where,
            remedy=f"set gpu to {given.gpu.name}, or leave profile out",
        )
    return gpu
