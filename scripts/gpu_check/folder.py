"""The folder of a check: its own, and emptied of what an earlier check left there."""

import shutil
from pathlib import Path

_OWN = ("*.out", "*.log", "fit.json", "validate-*.json", "profile*.npz", "*.validation*.json")


_MARK = "gpu-check"
"""A file that says whose folder it is: what an earlier check left there may be removed."""


def claim(out: Path) -> str:
    """Make the folder, or empty it of an earlier check; return why it cannot be had, or ""."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()) and not (out / _MARK).exists():
            return f"OUT {out}: holds files that no check wrote; name an empty folder, or a new one"
        (out / _MARK).write_text("scripts/gpu_check.sh removes its older files here\n")
        _clear(out)
    except OSError as error:
        return f"OUT {out}: cannot be used ({error.strerror or error})"
    return ""


def _clear(out: Path) -> None:
    """Remove what an earlier check left, so that nothing of it is taken for this one's."""
    for pattern in _OWN:
        for path in out.glob(pattern):
            path.unlink()
    for folder in ("rows", "plots"):
        shutil.rmtree(out / folder, ignore_errors=True)
