"""What `twin compare` puts side by side: a scenario, a policy or a result, told by content."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.load.documents import read_mapping, read_text
from twin.load.examples import find_scenario


@dataclass(frozen=True, slots=True)
class Comparand:
    """One side; `summary` is empty for a policy compared without a scenario."""

    name: str
    inputs: dict[str, Any]
    summary: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return what `twin.compare.compare` takes."""
        data: dict[str, Any] = {"inputs": self.inputs}
        if self.summary:
            data["summary"] = self.summary
        return data


def load_sides(
    paths: tuple[str, str], assignments: tuple[list[str], list[str]], scenario: str | None
) -> tuple[Comparand, Comparand]:
    """Return both sides; scenarios (and policies, given a scenario) are simulated.

    Args:
        paths: files, folders written by `twin simulate --out`, or names of examples.
        assignments: `key=value` overrides of each side.
        scenario: where policies are tried; None: their inputs alone are compared.
    """
    sides = [
        _load(path, overrides, scenario) for path, overrides in zip(paths, assignments, strict=True)
    ]
    a, b = sides
    if bool(a.summary) != bool(b.summary):
        raise InputError(
            "a policy can be compared with a policy only",
            where=f"{paths[0]}, {paths[1]}",
            remedy="give --scenario to simulate the policy",
        )
    return a, b


def _load(path: str, assignments: list[str], scenario: str | None) -> Comparand:
    found = _find(path)
    if found.suffix == ".json":
        return _result(found, path, assignments)
    data = read_mapping(found, "scenario, policy or result")
    if "llm" in data or "workload" in data:
        return _simulated(path, path, assignments, {})
    if scenario is not None:
        return _simulated(scenario, path, assignments, {"policy": str(found)})
    return _policy(found, path, assignments)


def _find(path: str) -> Path:
    candidate = Path(path)
    if candidate.is_dir():
        summary = candidate / "summary.json"
        if summary.is_file():
            return summary
        raise InputError(
            "holds no summary.json", where=path, remedy="name a folder of `twin simulate --out`"
        )
    return find_scenario(path)


def _result(found: Path, path: str, assignments: list[str]) -> Comparand:
    if assignments:
        raise InputError(
            "a finished result takes no overrides", where=path, remedy="compare its scenario"
        )
    try:
        data = json.loads(
            read_text(found, "result"),
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_whole,
        )
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"is not valid JSON: {error}",
            where=path,
            remedy="give what `twin simulate --json` wrote",
        ) from None
    if not isinstance(data, dict) or not isinstance(data.get("inputs"), dict):
        raise InputError(
            "is not a result", where=path, remedy="give what `twin simulate --json` wrote"
        )
    summary = data.get("summary")
    if not isinstance(summary, dict):
        summary = {k: v for k, v in data.items() if k not in ("inputs", "notes", "wall_s")}
    if "ttft_s" not in summary:
        raise InputError("holds no figures", where=path, remedy="give a result of `twin simulate`")
    return Comparand(path, data["inputs"], summary)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


def _whole(text: str) -> int:
    _finite(text)  # as large as a float at most: figures are compared as floats
    return int(text)


def _simulated(scenario: str, name: str, assignments: list[str], more: dict[str, Any]) -> Comparand:
    from twin.engine import simulate
    from twin.load import load_scenario
    from twin.load.overrides import parse_assignments
    from twin.report.metrics import summarise

    result = simulate(load_scenario(scenario, {**more, **parse_assignments(assignments)}))
    return Comparand(name, result.inputs, summarise(result))


def _policy(found: Path, path: str, assignments: list[str]) -> Comparand:
    from twin.load import load_policy

    if assignments:
        raise InputError(
            "overrides of a policy need a scenario", where=path, remedy="give --scenario"
        )
    return Comparand(path, load_policy(found).model_dump(mode="json"))
