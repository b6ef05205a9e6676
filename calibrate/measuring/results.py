"""The files of a measurement: rows as CSV and Parquet, and what happened, as JSON."""

import json
from pathlib import Path
from typing import Any

from calibrate.measurement import read_measurements, write_measurements
from calibrate.measuring.item import key_of
from calibrate.measuring.journal import FILE, Kept, read_journal
from calibrate.measuring.session import DRY_RUN
from calibrate.measuring.suite import Outcome
from twin.errors import InputError
from twin.files import write_text

CSV, PARQUET, REPORT = "measurements.csv", "measurements.parquet", "measure.json"


def write_results(folder: Path, kept: Kept, outcome: Outcome) -> None:
    """Write the rows that a journal holds, and the report of the last run."""
    rows = [kept.rows[key] for key in sorted(kept.rows)]
    if rows:
        write_measurements(folder / CSV, rows)
        write_measurements(folder / PARQUET, rows)
    write_text(folder / REPORT, json.dumps(_report(kept, outcome), indent=1) + "\n")


def _report(kept: Kept, outcome: Outcome) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "gpu": kept.facts,
        "pretended": kept.engine == DRY_RUN,
        "rows": len(kept.rows),
        "measured": outcome.measured,
        "already_measured": outcome.already,
        "not_reached": outcome.not_reached,
        "discarded": outcome.discarded,
        "skipped": _by_reason(outcome),
        "reference_bytes_per_s": outcome.references,
        "lost": outcome.lost,
    }


def _by_reason(outcome: Outcome) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item, reason in outcome.skipped.items():
        found.setdefault(reason, []).append(item)
    return found


def read_folder(folder: Path) -> Kept:
    """Return the rows of a folder that `measure` wrote.

    The journal has them all; a folder that was passed on without it has CSV or Parquet, and the
    GPU's facts in the report.

    Raises:
        InputError: there is neither, or it is damaged.
    """
    if (folder / FILE).exists():
        return read_journal(folder / FILE)
    tables = [folder / name for name in (PARQUET, CSV) if (folder / name).exists()]
    if not tables:
        raise InputError(
            "holds no measurements",
            where=str(folder),
            remedy="name a folder that twin-calibrate measure wrote",
        )
    rows = read_measurements(tables[0])
    found = {key_of(row.kernel, row.shape, row.l2): row for row in rows}
    return Kept(_facts(folder / REPORT), rows[0].engine, found)


def _facts(report: Path) -> dict[str, Any]:
    try:
        facts = json.loads(report.read_bytes())["gpu"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return facts if isinstance(facts, dict) else {}
