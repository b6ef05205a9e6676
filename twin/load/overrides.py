"""`--set policy.block_size=32`: override any key of a scenario before it is validated."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.load.documents import parse_yaml
from twin.load.paths import names_a_file


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Return {dotted key: value} of `key=value` texts; values are read as YAML."""
    overrides: dict[str, Any] = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key or any(not part for part in key.split(".")):
            raise InputError(
                f"{text!r} is not key=value", where="--set", remedy="write policy.block_size=32"
            )
        overrides[key] = parse_yaml(value, f"--set {key}")
    return overrides


def apply(data: dict[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return `data` with the overrides applied; the input is left alone.

    File paths among the overrides are taken from the current folder, as a shell user means
    them, whereas paths inside a scenario file are relative to that file.
    """
    result: dict[str, Any] = _copy(data)
    if "workload.path" in overrides:
        result = _as_trace(result, overrides)
    _drop_version_of_another(result, overrides)
    for key, value in overrides.items():
        if names_a_file(key, value):
            value = str(Path(value).absolute())
        _assign(result, key.split("."), value, key)
    return result


def _drop_version_of_another(data: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    """Leave out a file's engine.version where another engine is named: it is not its own."""
    engine = data.get("engine")
    if not isinstance(engine, dict) or "engine.version" in overrides:
        return
    if overrides.get("engine.name", engine.get("name", "vllm")) != engine.get("name", "vllm"):
        engine.pop("version", None)


def _as_trace(data: dict[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    # A trace given to a scenario whose load is synthetic replaces that load: none of its other
    # keys could apply.
    workload = data.get("workload")
    kind = workload.get("kind") if isinstance(workload, dict) else None
    if kind == "trace" or "workload.kind" in overrides or "workload" in overrides:
        return data
    kept = {k: v for k, v in (workload or {}).items() if k in ("too_long", "max_requests")}
    return {**data, "workload": {"kind": "trace", **kept}}


def _assign(data: dict[str, Any], parts: list[str], value: Any, key: str) -> None:
    node: Any = data
    for depth, part in enumerate(parts[:-1]):
        node = _step_into(node, part, ".".join(parts[: depth + 1]), key)
    last = parts[-1]
    if isinstance(node, list):
        node[_index(node, last, key)] = value
    elif isinstance(node, dict):
        node[last] = value
    else:
        raise InputError(f"{key!r}: {'.'.join(parts[:-1])!r} holds no keys", where="--set")


def _step_into(node: Any, part: str, path: str, key: str) -> Any:
    if isinstance(node, list):
        return node[_index(node, part, key)]
    if isinstance(node, dict):
        child = node.get(part)
        if child is None:
            child = node[part] = {}
        return child
    raise InputError(f"{key!r}: {path.rpartition('.')[0]!r} holds no keys", where="--set")


def _index(node: list[Any], part: str, key: str) -> int:
    if part.isdigit() and int(part) < len(node):
        return int(part)
    raise InputError(f"{key!r}: {part!r} is not a position in a list of {len(node)}", where="--set")


def _copy(node: Any) -> Any:
    if isinstance(node, dict):
        return {k: _copy(v) for k, v in node.items()}
    if isinstance(node, list):
        return [_copy(v) for v in node]
    return node
