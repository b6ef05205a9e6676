"""Compilation by numba, which is optional: without it the package is not to be imported.

The code is kept on disk for the next process, under a digest of all sources it comes from: numba
itself would notice a change only in the file of the function that is called.
"""

import hashlib
import importlib.util
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import twin.llm
from twin.errors import InputError

_PREFIX = "numba-"

Function = TypeVar("Function", bound=Callable[..., Any])


def is_installed() -> bool:
    """Whether numba can be imported, without importing it (half a second)."""
    return importlib.util.find_spec("numba") is not None


def check_installed() -> None:
    """Refuse to go on without numba.

    Raises:
        InputError: it cannot be imported.
    """
    if not is_installed():
        raise InputError(
            "the compiled engine needs numba, which is not installed",
            remedy="make fast, or pip install numba; or take the engine interpreted or fast",
        )


def is_kept() -> bool:
    """Whether an earlier process has compiled these very sources and kept the code."""
    return any(_folder().rglob("entry.advance_all*.nbi"))


def compiled(function: Function) -> Function:
    """Compile a function when it is first called.

    Sums are taken in the order written, without fused multiply-adds, so that they come out as
    Python's to the last bit.
    """
    from numba import config, njit

    before, config.CACHE_DIR = config.CACHE_DIR, str(_folder())
    found: Function = njit(cache=True, fastmath=False, error_model="numpy")(function)
    config.CACHE_DIR = before
    _take_constants_as_numbers(found)
    return found


def _take_constants_as_numbers(function: Any) -> None:
    """Compile a function once, not once more for every constant it is called with."""
    from numba.core import types

    unliteral: Callable[[Any], Any] = vars(types)["unliteral"]
    template_of = function.get_call_template

    def get_call_template(args: Any, keywords: Any) -> Any:
        plain = {name: unliteral(kind) for name, kind in keywords.items()}
        return template_of(tuple(map(unliteral, args)), plain)

    function.get_call_template = get_call_template


@cache
def _folder() -> Path:
    """Return where the compiled code of these very sources is kept.

    Beside them, or in the user's cache where they may not be written to. What was compiled from
    other states of the sources goes.
    """
    here, llm = Path(__file__).parent, Path(twin.llm.__file__).parent
    constants_of = [llm / "step_time.py", llm / "decode_piece.py", llm / "op_sum.py"]
    digest = hashlib.sha256()
    for path in [*sorted(here.glob("*.py")), *constants_of]:
        digest.update(path.read_bytes())
    parent = here / "__pycache__"
    if not os.access(parent if parent.exists() else here, os.W_OK):
        parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "servetwin"
    folder = parent / f"{_PREFIX}{digest.hexdigest()[:16]}"
    if parent.name == "__pycache__" and not folder.exists():
        for older in parent.glob(f"{_PREFIX}*"):
            shutil.rmtree(older, ignore_errors=True)
    return folder
