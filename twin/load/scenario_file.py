"""`load_scenario`: a YAML file, overrides applied, names looked up, traces read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.load.documents import read_mapping
from twin.load.examples import find_scenario
from twin.load.migrations import migrate_scenario
from twin.load.overrides import apply
from twin.load.paths import from_folder
from twin.load.policy_file import read_policy_data
from twin.load.resolve import resolve_scenario
from twin.load.validation import validate
from twin.policy import EnginePolicy
from twin.scenario import Scenario, ScenarioFile


def load_scenario(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Return the scenario in a YAML file, ready to simulate.

    Args:
        path: the file, or the name of a built-in example.
        overrides: dotted keys and their values, for example `{"cluster.replicas": 4}`.

    Raises:
        InputError: one line that names file, key or row, and what would be right.
    """
    file, base = read_scenario_file(path, overrides)
    return resolve_scenario(file, base, where=str(path))


def scenario_from(
    data: Mapping[str, Any], base: str | Path = ".", overrides: Mapping[str, Any] | None = None
) -> Scenario:
    """Return the scenario in plain data shaped like a scenario file.

    Args:
        data: what a scenario file holds, schema version included.
        base: folder that relative paths in it start from.
        overrides: as in `load_scenario`.

    Raises:
        InputError: as `load_scenario`.
    """
    file = scenario_file_from(data, Path(base), overrides)
    return resolve_scenario(file, Path(base), where=str(data.get("name", "scenario")))


def scenario_file_from(
    data: Mapping[str, Any], base: Path, overrides: Mapping[str, Any] | None = None
) -> ScenarioFile:
    """Return the validated file of plain data; see `scenario_from`."""
    where = str(data.get("name", "scenario"))
    return _validated(dict(data), base, overrides or {}, where)


def read_scenario_file(
    path: str | Path, overrides: Mapping[str, Any] | None = None
) -> tuple[ScenarioFile, Path]:
    """Return the validated file and the folder its relative paths start from."""
    found = find_scenario(path)
    data = read_mapping(found, "scenario file")
    return _validated(data, found.parent, overrides or {}, str(path)), found.parent


def _validated(
    data: dict[str, Any], folder: Path, overrides: Mapping[str, Any], where: str
) -> ScenarioFile:
    _check_kind(data, where)
    data = migrate_scenario(data, where)
    # A policy in a file of its own is read first, so that overrides reach into it.
    for source in (data, overrides):
        if isinstance(source.get("policy"), str):
            data = {**data, "policy": _policy_at(source["policy"], source is data, folder)}
    rest = {key: value for key, value in overrides.items() if not _is_policy_path(key, value)}
    data = from_folder(without_nulls(apply(data, rest)), folder)
    return validate(ScenarioFile, data, where)


def _check_kind(data: dict[str, Any], where: str) -> None:
    """Tell a file of another kind by its keys."""
    if "llm" in data or "workload" in data:
        return
    if "hidden_size" in data or "architectures" in data:
        raise InputError("is the config.json of a model", where=where, remedy="set llm to its path")
    if any(key in EnginePolicy.model_fields for key in data if key != "schema_version"):
        raise InputError(
            "is a policy file", where=where, remedy=f"give a scenario and --set policy={where}"
        )


def without_nulls(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out null keys: a section whose keys are all commented out reads as null."""
    kept = {key: value for key, value in data.items() if value is not None}
    policy = kept.get("policy")
    if isinstance(policy, dict):
        kept["policy"] = {key: value for key, value in policy.items() if value is not None}
    return kept


def _is_policy_path(key: str, value: Any) -> bool:
    return key == "policy" and isinstance(value, str)


def _policy_at(text: str, in_file: bool, folder: Path) -> dict[str, Any]:
    return read_policy_data(folder / text if in_file else Path(text))
