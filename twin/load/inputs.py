"""`Inputs`: what the files hold that a scenario names, read once for any number of its variants."""

from dataclasses import dataclass
from pathlib import Path

from hwmodels.given import GivenProfile
from twin.errors import InputError
from twin.llm.arch import ModelArch
from twin.llm.config_json import read_config
from twin.llm.models import MODELS, find_model
from twin.load.profile_file import read_profile_file
from twin.naming import lookup
from twin.scenario import ScenarioFile
from twin.workload.build import LoadedWorkload, load_traces


@dataclass(frozen=True, slots=True)
class Inputs:
    """A scenario's files, read.

    Attributes:
        arch: the network.
        workload: the workload with its traces.
        given: the hardware profile that the scenario names; None: it names none.
    """

    arch: ModelArch
    workload: LoadedWorkload
    given: GivenProfile | None = None


def read_inputs(file: ScenarioFile, base: Path, *, where: str) -> Inputs:
    """Read the files that a scenario names.

    Args:
        file: the validated input.
        base: folder that relative paths in it start from.
        where: how errors name it.

    Raises:
        InputError: one of them cannot be used.
    """
    return Inputs(
        find_arch(file.llm, base, f"{where}, llm"),
        load_traces(file.workload, base),
        read_profile_file(file, base, where),
    )


def find_arch(text: str, base: Path, where: str) -> ModelArch:
    """Return a built-in network, or the one a `config.json` describes.

    Args:
        text: its name or path.
        base: folder that a relative path starts from.
        where: what named it, for messages.

    Raises:
        InputError: there is none, or the file cannot be used.
    """
    if text in MODELS:
        return MODELS[text]
    if "/" in text or text.endswith(".json"):
        _check_not_a_hub_id(text, base, where)
        return read_config(base / text)
    return lookup(MODELS, text, "model", where=where)


def _check_not_a_hub_id(text: str, base: Path, where: str) -> None:
    """`Qwen/Qwen3-32B` is a name on a model hub; point to the built-in network of that name."""
    known = None if (base / text).exists() or text.endswith(".json") else find_model(text)
    if known is not None:
        raise InputError(f"no file {text!r}", where=where, remedy=f"did you mean {known.name!r}?")
