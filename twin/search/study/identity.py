"""What makes two searches the same one, so that a run goes on where another stopped."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from twin import __version__
from twin.load.paths import names_a_file
from twin.search.problem import SearchProblem
from twin.search.study.rungs import Halving
from twin.validation import content_digest

_SHOWN = 60
"""Characters of a value in a message."""


def facts_of(problem: SearchProblem, sampler: str, seed: int, halving: Halving) -> dict[str, Any]:
    """Return as plain data all that a study's trials depend on.

    Files count by what they hold, not by their names, so that machines may keep them elsewhere.
    The number of trials is left out: a study can be made longer.

    Args:
        problem: what is searched.
        sampler: by name.
        seed: of what it draws.
        halving: when weak candidates stop early.
    """
    return {
        "servetwin": __version__,
        "scenario": _by_content("", problem.file.model_dump(mode="json"), problem.base),
        "knobs": {
            knob.key: {type(knob.domain).__name__.lower(): _plain(asdict(knob.domain))}
            for knob in problem.knobs
        },
        "objectives": list(problem.objectives),
        "limits": _plain(asdict(problem.limits)),
        "usd_per_gpu_hour": problem.usd_per_gpu_hour,
        "search_share": problem.search_share,
        "starts": [dict(start) for start in problem.starts],
        "sampler": sampler,
        "seed": seed,
        "halving": halving,
    }


def study_name(problem: SearchProblem, facts: Mapping[str, Any]) -> str:
    """Return the name of the study of a problem: equal facts give equal names."""
    return f"{problem.file.name}-{content_digest(facts)[:16]}"


def differences(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Return what differs between the facts of a study and those of a problem, in words."""
    there, here = _flat("", kept), _flat("", asked)
    return [
        f"{key} is {_shown(there, key)} there and {_shown(here, key)} here"
        for key in dict.fromkeys((*here, *there))
        if there.get(key, _ABSENT) != here.get(key, _ABSENT)
    ]


_ABSENT = object()


def _shown(flat: Mapping[str, Any], key: str) -> str:
    if key not in flat:
        return "missing"
    text = repr(flat[key])
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _flat(prefix: str, node: Any) -> dict[str, Any]:
    if not isinstance(node, Mapping) or not node:
        return {prefix: node}
    found: dict[str, Any] = {}
    for key, value in node.items():
        found |= _flat(f"{prefix}.{key}" if prefix else str(key), value)
    return found


def _by_content(key: str, node: Any, base: Path) -> Any:
    if isinstance(node, dict):
        return {
            name: _by_content(f"{key}.{name}" if key else name, item, base)
            for name, item in node.items()
        }
    if isinstance(node, list):
        return [_by_content(key, item, base) for item in node]
    if names_a_file(key, node) and (base / node).is_file():
        return f"sha256 {hashlib.sha256((base / node).read_bytes()).hexdigest()}"
    return node


def _plain(node: Any) -> Any:
    """Return data as JSON would give it back."""
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_plain(value) for value in node]
    return node
