"""`EXPORTERS`: what a policy can be written as, and `export`, which writes it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.export.deployment import Deployment, deployment_of, verdict_of
from twin.export.dynamo import dynamo_files
from twin.export.engines import ENGINE_FORMATS
from twin.export.kubernetes import kubernetes_files
from twin.export.llm_d import llm_d_files
from twin.export.servers import engine_of, sglang_files, trtllm_files, vllm_files
from twin.load import load_scenario
from twin.load.documents import read_mapping
from twin.load.examples import find_scenario
from twin.naming import lookup
from twin.scenario import EngineSpec


@dataclass(frozen=True, slots=True)
class Exporter:
    """One target.

    Attributes:
        about: what it writes, in a few words.
        files: text by file name, the main file first.
        engines: those it can be written for.
    """

    about: str
    files: Callable[[Deployment], dict[str, str]]
    engines: tuple[str, ...] = ("vllm", "sglang", "trtllm")


EXPORTERS: dict[str, Exporter] = {
    "vllm": Exporter("YAML for vllm serve, and its command line", vllm_files, ("vllm",)),
    "sglang": Exporter("YAML for sglang serve, and its command line", sglang_files, ("sglang",)),
    "trtllm": Exporter("LLM-API YAML for trtllm-serve", trtllm_files, ("trtllm",)),
    "kubernetes": Exporter("Deployment, Service and HorizontalPodAutoscaler", kubernetes_files),
    "llm_d": Exporter("values of llm-d's modelservice chart", llm_d_files, ("vllm",)),
    "dynamo": Exporter("a DynamoGraphDeployment", dynamo_files),
}


def export(
    path: str | Path, target: str, overrides: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Return the files of a target, text by name, the main one first.

    The scenario is simulated once, for the forecast in the files' headers.

    Args:
        path: a scenario file, an example's name, or the folder that `twin search` wrote.
        target: a name in `EXPORTERS`.
        overrides: as in `twin.load.load_scenario`.

    Raises:
        InputError: there is no such scenario or target, or the engine would refuse the policy.
    """
    chosen = lookup(EXPORTERS, target, "target")
    return chosen.files(load_deployment(path, overrides, chosen.engines))


def load_deployment(
    path: str | Path,
    overrides: Mapping[str, Any] | None = None,
    engines: Sequence[str] = tuple(ENGINE_FORMATS),
) -> Deployment:
    """Return a scenario with its forecast and a GPU's verdict, if there is one beside it.

    Args:
        path, overrides: as in `export`.
        engines: what the scenario's engine may be; it is checked before anything is simulated,
            and so is the policy.

    Raises:
        InputError: as `export`.
    """
    from twin.engine import simulate
    from twin.report.metrics import summarise

    file, judged = source_files(path)
    scenario = load_scenario(file, overrides)
    own = _engine_in(file)
    # A verdict is of steps as one engine makes them.
    judges = judged.exists() and own == scenario.file.engine.name
    verdict = verdict_of(judged, scenario) if judges else None
    bare = replace(deployment_of(scenario, _origin(path, judged), {}, verdict), written_for=own)
    wanted = engines[0] if scenario.file.engine.name not in engines else None
    form = engine_of(bare, wanted)
    for part in bare.parts:
        form.write(part)
    return replace(bare, summary=summarise(simulate(scenario)))


def _engine_in(file: Path) -> str:
    """Return the engine that a scenario's file names; the default one where it names none."""
    engine = read_mapping(file, "scenario file").get("engine")
    name = engine.get("name") if isinstance(engine, Mapping) else None
    return name if name in ENGINE_FORMATS else EngineSpec().name


def source_files(path: str | Path) -> tuple[Path, Path]:
    """Return (scenario file, the file whose policy a GPU's verdict is of).

    Raises:
        InputError: there is no scenario.
    """
    folder = Path(path)
    if not folder.is_dir():
        found = find_scenario(path)
        return found, found
    scenario, policy = folder / "scenario.yaml", folder / "policy.yaml"
    if not scenario.is_file():
        raise InputError(
            "holds no scenario.yaml",
            where=str(folder),
            remedy="name a scenario file, or a folder that twin search wrote",
        )
    return scenario, policy if policy.is_file() else scenario


def _origin(path: str | Path, judged: Path) -> str:
    """Return how `twin-calibrate validate` is told what to run."""
    if not Path(path).is_dir():
        return str(path)
    if judged.name == "policy.yaml":
        return f"{judged} --scenario {judged.parent / 'scenario.yaml'}"
    return str(judged)
