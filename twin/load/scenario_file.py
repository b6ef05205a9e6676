"""`load_scenario`: a YAML file, overrides applied, names looked up, traces read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twin.load.documents import read_mapping
from twin.load.examples import find_scenario
from twin.load.migrations import migrate_scenario
from twin.load.overrides import apply
from twin.load.policy_file import read_policy_data
from twin.load.resolve import resolve_scenario
from twin.load.validation import validate
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


def read_scenario_file(
    path: str | Path, overrides: Mapping[str, Any] | None = None
) -> tuple[ScenarioFile, Path]:
    """Return the validated file and the folder its relative paths start from."""
    found = find_scenario(path)
    data = migrate_scenario(read_mapping(found, "scenario file"), str(path))
    # A policy in a file of its own is read first, so that overrides reach into it.
    for source in (data, overrides or {}):
        if isinstance(source.get("policy"), str):
            data = {**data, "policy": _policy_at(source["policy"], source is data, found.parent)}
    rest = {k: v for k, v in (overrides or {}).items() if not _is_policy_path(k, v)}
    # A section whose keys are all commented out reads as null: the same as leaving it out.
    data = {key: value for key, value in apply(data, rest).items() if value is not None}
    return validate(ScenarioFile, data, str(path)), found.parent


def _is_policy_path(key: str, value: Any) -> bool:
    return key == "policy" and isinstance(value, str)


def _policy_at(text: str, in_file: bool, folder: Path) -> dict[str, Any]:
    return read_policy_data(folder / text if in_file else Path(text))
