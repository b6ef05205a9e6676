"""`Deployment`: what is exported — a scenario, what it is forecast to do, and what a GPU said."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twin.cluster import AutoscalerSpec
from twin.errors import InputError
from twin.llm.arch import ModelArch
from twin.llm.models import MODELS
from twin.scenario import Scenario, pools_of
from twin.validation import Verdict, read_policy_of, read_verdict

_HUB = re.compile(r"huggingface\.co/([\w.-]+/[\w.-]+)")


@dataclass(frozen=True, slots=True)
class Part:
    """Replicas of one kind: what one configuration file is for.

    Attributes:
        name: of the pool; empty where there is one kind only.
        scenario: what a scenario of these replicas alone would be.
        model: what the engine loads: an id on the Hugging Face hub, or a folder.
        replicas: how many at the start.
        autoscaler: how many later; None: as many.
    """

    name: str
    scenario: Scenario
    model: str
    replicas: int
    autoscaler: AutoscalerSpec | None

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        spec = self.scenario.file.parallelism
        return spec.tp * spec.pp * spec.dp


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is exported.

    Attributes:
        origin: how the reader names the scenario, for the commands in the files.
        scenario: with all names looked up.
        summary: figures of its simulation, as `twin.report.metrics.summarise` gives them.
        verdict: of a GPU on the policy as it stands; None: there is none.
        parts: one for each pool.
        written_for: the engine that the scenario's file names; None: the simulated one.
    """

    origin: str
    scenario: Scenario
    summary: Mapping[str, Any]
    verdict: Verdict | None
    parts: tuple[Part, ...]
    written_for: str | None = None

    @property
    def slug(self) -> str:
        """The scenario's name as Kubernetes takes names (RFC 1123, 40 characters at most)."""
        return slug(self.scenario.file.name)


def slug(text: str) -> str:
    """Return text as an RFC 1123 label of at most 40 characters, `llm` if nothing is left."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    return plain if plain and plain[0].isalpha() else f"llm-{plain}".rstrip("-")


def deployment_of(
    scenario: Scenario, origin: str, summary: Mapping[str, Any], verdict: Verdict | None = None
) -> Deployment:
    """Return a scenario, ready to export.

    Raises:
        InputError: two pools' files would have the same name, or as `model_id`.
    """
    pools = pools_of(scenario)
    _check_distinct([pool.name for pool in pools], origin)
    parts = tuple(
        Part(
            name=pool.name,
            scenario=pool.scenario,
            model=model_id(pool.scenario.arch, pool.scenario.file.llm),
            replicas=pool.replicas,
            autoscaler=pool.autoscaler,
        )
        for pool in pools
    )
    return Deployment(origin, scenario, summary, verdict, parts)


def _check_distinct(names: Sequence[str], where: str) -> None:
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(slug(name), name)
        if other != name:
            raise InputError(
                f"pools {other!r} and {name!r} would both be {slug(name)!r} in names of files and "
                "objects",
                where=where,
                remedy="rename one",
            )


def model_id(arch: ModelArch, llm: str) -> str:
    """Return what an engine is told to load.

    A built-in network's own repository on the hub; for a `config.json` the folder it lies in.

    Raises:
        InputError: the table names no repository, or the folder's name cannot be an argument.
    """
    if llm in MODELS:
        found = _HUB.search(arch.source)
        if found is None:
            raise InputError(f"no repository is known of {llm}", remedy="name its config.json")
        return found.group(1)
    folder = str(Path(llm).parent)
    if re.search(r"\s", folder) or folder.startswith("-"):
        raise InputError(f"{folder!r} cannot stand on a command line", remedy="rename the folder")
    return folder


def verdict_of(path: Path, scenario: Scenario) -> Verdict | None:
    """Return what a GPU said of the policy in a file, if the scenario still has that policy."""
    verdict = read_verdict(path)
    if verdict is None or read_policy_of(path) != scenario.file.policy:
        return None
    return verdict
