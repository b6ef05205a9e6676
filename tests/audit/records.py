"""Figures that an audit measured, kept under `out/audit` until `report.py` writes them down."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from twin.files import write_text

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "out" / "audit"
TWIN = str(Path(sys.executable).with_name("twin"))
"""The command of the environment the tests run in."""


def write(name: str, figures: Any) -> None:
    """Keep `figures` (JSON-ready) under `name`, replacing older ones."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_text(FOLDER / f"{name}.json", json.dumps(figures, indent=1, allow_nan=False) + "\n")


def read(name: str) -> Any:
    """Return the figures under `name`, None where nothing was measured."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def read_all(prefix: str) -> dict[str, Any]:
    """Return {rest of the name: figures} of all names with a prefix, in order of name."""
    paths = sorted(FOLDER.glob(f"{prefix}*.json"))
    return {path.stem.removeprefix(prefix): json.loads(path.read_text()) for path in paths}


def data_folder() -> Path:
    """Return where the measured data should be."""
    return Path(os.environ.get("SERVETWIN_DATA") or ROOT.parent / "shared" / "data")
