"""Where a command's tables and JSON go."""

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from twin.errors import InputError
from twin.files import write_text

JSON_HELP = "Write the figures as JSON to FILE; - for standard output (tables then go to stderr)."


def console_for(json_path: str | None) -> Console:
    """Return the console for tables: standard error when JSON takes standard output."""
    console = Console(stderr=json_path == "-", highlight=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in _environment():
        console.width = 110
    return console


def emit_json(data: Any, json_path: str | None) -> None:
    """Write `data` where `--json` asked for it, whole or not at all."""
    if json_path is None:
        return
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if json_path == "-":
        sys.stdout.write(text)
        return
    write_text(json_path, text)


def check_writable(json_path: str | None, out: str | None) -> None:
    """Refuse an impossible output before the work is done, not after it."""
    if json_path not in (None, "-"):
        target = Path(str(json_path))
        if target.is_dir():
            raise InputError("is a folder", where=f"--json {json_path}", remedy="name a file")
        if not target.absolute().parent.is_dir():
            raise InputError(
                "its folder does not exist",
                where=f"--json {json_path}",
                remedy=f"create {target.parent}",
            )
    if out is not None and Path(out).exists() and not Path(out).is_dir():
        raise InputError("is a file, not a folder", where=f"--out {out}", remedy="name a folder")


def _environment() -> Any:
    import os

    return os.environ
