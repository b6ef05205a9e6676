"""File paths inside a scenario: which keys hold one, and the folder they start from."""

from pathlib import Path
from typing import Any


def names_a_file(key: str, value: Any) -> bool:
    """Whether a dotted key of a scenario holds a file's path (rather than a built-in name)."""
    if not isinstance(value, str) or not value:
        return False
    # A policy is keys and values, or a file however it is called: there are no built-in ones.
    if key in ("profile", "policy") or key.rpartition(".")[2] == "path":
        return True
    return key == "llm" and ("/" in value or value.endswith((".json", ".yaml")))


def from_folder(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return `data` with its relative paths made absolute from `folder`; the input is left alone.

    A scenario written beside a run's outputs then names the same files as the one it came from.
    Paths are not resolved: links may loop, and errors should name a path as it was given.
    """
    # A key may be a whole number where a mapping's keys are levels; here it is merely unknown.
    return {key: _absolute(str(key), value, folder) for key, value in data.items()}


def _absolute(key: str, value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {name: _absolute(f"{key}.{name}", item, folder) for name, item in value.items()}
    if names_a_file(key, value):
        return str((folder / value).absolute())
    return value
