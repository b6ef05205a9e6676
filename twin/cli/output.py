"""Where a command's tables and JSON go."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from twin.errors import InputError
from twin.files import write_text

JSON_HELP = "Write the figures as JSON to FILE; - for standard output (tables then go to stderr)."


def console_for(json_path: str | None) -> Console:
    """Return the console for tables: standard error when JSON takes standard output."""
    console = Console(stderr=json_path == "-", highlight=False, soft_wrap=False)
    asked = os.environ.get("COLUMNS", "")
    if not console.is_terminal and not (asked.isdecimal() and int(asked)):
        console.width = 110
    return console


def emit_json(data: Any, json_path: str | None) -> None:
    """Write `data` where `--json` asked for it, whole or not at all."""
    if json_path is None:
        return
    # A terminal or pipe may take ASCII only; a file is UTF-8.
    plain = json_path == "-"
    text = json.dumps(data, indent=2, ensure_ascii=plain, allow_nan=False) + "\n"
    if plain:
        sys.stdout.write(text)
        return
    write_text(json_path, text)


def check_writable(json_path: str | None, out: str | None, *, inputs: Sequence[str] = ()) -> None:
    """Refuse an impossible output before the work is done, not after it.

    Args:
        json_path: what `--json` names.
        out: what `--out` names.
        inputs: files that are read and must not be replaced.
    """
    check_json(json_path, inputs=inputs)
    if out is not None:
        check_folder(out, "--out")
        _check_spared(Path(out) / "scenario.yaml", inputs, f"--out {out}")


def check_json(json_path: str | None, *, inputs: Sequence[str | Path] = ()) -> None:
    """Refuse what `--json` cannot write to; `-` is standard output."""
    if json_path is not None and json_path != "-":
        check_file(json_path, "--json", inputs=inputs, remedy="name a file, or - for output")


def check_folder(name: str, option: str) -> None:
    """Refuse an output folder that is a file."""
    if not name:
        raise InputError("is empty", where=option, remedy="name a folder")
    if Path(name).exists() and not Path(name).is_dir():
        raise InputError(
            "is a file, not a folder", where=f"{option} {name}", remedy="name a folder"
        )


def check_file(
    name: str, option: str, *, inputs: Sequence[str | Path] = (), remedy: str = "name a file"
) -> None:
    """Refuse an output file that cannot be written, or that is an input."""
    if not name:
        raise InputError("is empty", where=option, remedy=remedy)
    target, where = Path(name), f"{option} {name}"
    if name == "-":
        raise InputError("standard output is for --json", where=where, remedy="name a file")
    if target.is_dir():
        raise InputError("is a folder", where=where, remedy="name a file")
    if not target.absolute().parent.is_dir():
        raise InputError("its folder does not exist", where=where, remedy=f"create {target.parent}")
    _check_spared(target, inputs, where)


def check_distinct(outputs: Mapping[str, str | None]) -> None:
    """Refuse one place for two outputs.

    Args:
        outputs: what each option names; None: it was not given.
    """
    taken: dict[Path, str] = {}
    for option, name in outputs.items():
        if name is None or name == "-":
            continue
        place = Path(name).resolve()
        if place in taken:
            raise InputError(
                f"{taken[place]} writes there too", where=f"{option} {name}", remedy="name another"
            )
        taken[place] = option


def check_alone(option: str, others: Mapping[str, object]) -> None:
    """Refuse options that `option` would have to ignore.

    Args:
        option: what was asked for.
        others: the options it does not go with; false or None: not given.
    """
    given = [name for name, value in others.items() if value is not None and value is not False]
    if given:
        raise InputError(
            f"does not go with {', '.join(given)}", where=option, remedy="leave one of them out"
        )


def _check_spared(target: Path, inputs: Sequence[str | Path], where: str) -> None:
    for name in inputs:
        if target.is_file() and Path(name).is_file() and target.samefile(name):
            raise InputError(f"would replace the input {name}", where=where, remedy="name another")
