"""Replaying a recording: which engine made it, and how far our scheduler follows it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from twin.conformance.documents import read_document
from twin.conformance.report import ConformanceReport
from twin.conformance.sglang import replay_sglang
from twin.conformance.vllm import replay_vllm
from twin.errors import InputError
from twin.naming import lookup

Replay = Callable[[dict[str, Any], str], ConformanceReport]

ENGINES: dict[str, Replay] = {
    "vllm": replay_vllm,
    "sglang": replay_sglang,
}
"""Engine that made a recording to what replays it (document, file name)."""


def replay_file(path: str | Path) -> ConformanceReport:
    """Replay one recording (`.json` or `.json.gz`) and compare every recorded field.

    Raises:
        InputError: the file is not a recording of an engine we know, or lacks a key.
    """
    document = read_document(path)
    where = str(path)
    return lookup(ENGINES, _engine_of(document, where), "engine", where=where)(document, where)


def _engine_of(document: dict[str, Any], where: str) -> str:
    """Return the engine named by `engine`, or by the key that gives its version."""
    named = document.get("engine")
    if named is not None:
        return str(named)
    versions = [key.removesuffix("_version") for key in document if key.endswith("_version")]
    for name in [*filter(ENGINES.__contains__, versions), *versions]:
        if name != "schema":
            return name
    raise InputError(
        "does not say which engine was recorded",
        where=where,
        remedy="it has a key such as " + " or ".join(f"'{name}_version'" for name in ENGINES),
    )
