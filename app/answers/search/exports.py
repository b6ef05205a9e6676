"""The recommended policy of a study as files, for every target that its engine has."""

import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.answers.search.studies import OUT, find_study
from twin.errors import InputError

OWN = "/path/to/your/files"
"""Stands in exported files where the app's copies of a visitor's files were."""

ORIGIN = "policy.yaml --scenario scenario.yaml"
"""How headers name what was exported: both lie beside the files that are downloaded."""

RESULTS = ("policy.yaml", "scenario.yaml", "report.html", "summary.json")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def exports(study_id: str) -> dict[str, Any]:
    """Return what can be deployed of a study that is done.

    The recommended scenario is simulated once, for the forecast in the files' headers.

    Args:
        study_id: its id.

    Returns:
        `targets`: by name of `twin.export.targets.EXPORTERS`: `about`, `files` (text by name),
        `caveats` and `problem` (why there are none; empty: there are); `results`: the search's
        own files, text by name. No text names a folder of this machine.

    Raises:
        InputError: there is no such study, or the policy cannot be simulated.
    """
    from twin.export.targets import EXPORTERS, load_deployment
    from twin.load import read_scenario_file

    study = find_study(study_id)
    if study is None:
        raise InputError("this study is not here any more", remedy="start another one")
    out = study.out
    engine = read_scenario_file(out / "scenario.yaml")[0].engine.name
    deployment = replace(load_deployment(out, None, (engine,)), origin=ORIGIN)
    targets: dict[str, dict[str, Any]] = {}
    for name, exporter in EXPORTERS.items():
        if engine not in exporter.engines:
            continue
        row: dict[str, Any] = {"about": exporter.about, "files": {}, "caveats": [], "problem": ""}
        try:
            files = exporter.files(deployment)
        except InputError as error:
            row["problem"] = _without_folders(str(error), study.folder)
        else:
            row["files"] = {at: _without_folders(text, study.folder) for at, text in files.items()}
            told = (caveat for text in row["files"].values() for caveat in caveats_in(text))
            row["caveats"] = list(dict.fromkeys(told))
        targets[name] = row
    results = {at: (out / at).read_text() for at in RESULTS if (out / at).is_file()}
    return {
        "targets": targets,
        "results": {at: _without_folders(text, study.folder) for at, text in results.items()},
    }


def caveats_in(text: str) -> list[str]:
    """Return the caveats in the comment at the head of an exported file, a sentence each."""
    found: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("# Caveats:"):
            break
    for line in lines:
        if line.startswith("# - "):
            found.append(line.removeprefix("# - "))
        elif line.startswith("#   ") and found:
            found[-1] += f" {line.removeprefix('#').strip()}"
        else:
            break
    return found


def packed(answer: Mapping[str, Any]) -> bytes:
    """Return all files of an answer as a ZIP archive, a folder a target; same files, same bytes."""
    files = dict(answer["results"])
    for target, row in answer["targets"].items():
        files |= {f"{target}/{name}": text for name, text in row["files"].items()}
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return held.getvalue()


def _without_folders(text: str, folder: Path) -> str:
    text = text.replace(str(folder / "input"), OWN).replace(f"{folder / OUT}/", "")
    return re.sub(re.escape(str(folder)), OWN, text)
