"""Whose report a folder holds already: no search writes over another one's."""

import json
from pathlib import Path
from typing import Any

from twin.errors import InputError

SUMMARY = "summary.json"


def check_folder(out: Path, study: str, storage: str | None) -> None:
    """Refuse a folder that holds the report of another search.

    A journal tells by itself whose folder it is, and to delete it is to start anew; what was kept
    in a database has left nothing in its folder but the report.

    Args:
        out: the folder that the report will be written into.
        study: name of the study; equal problems have equal ones.
        storage: URL of its database; None: a journal in `out`.

    Raises:
        InputError: the report there is another study's.
    """
    kept = _study_of(out / SUMMARY)
    there, where = kept.get("name"), str(kept.get("where", ""))
    if not isinstance(there, str) or there == study:
        return
    if storage is None and not where.startswith("--storage"):
        return
    raise InputError(
        f"holds the report of another search, {there}",
        where=str(out),
        remedy=f"name another --out, or delete its {SUMMARY}",
    )


def _study_of(summary: Path) -> dict[str, Any]:
    try:
        kept = json.loads(summary.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # none, or no summary of ours
    study = kept.get("study") if isinstance(kept, dict) else None
    return study if isinstance(study, dict) else {}
