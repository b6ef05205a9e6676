"""Compilation by numba, which is optional: without it the package is not to be imported.

The code is kept on disk for the next process, under a digest of all sources it comes from: numba
itself would notice a change only in the file of the function that is called.
"""

import hashlib
import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def is_installed() -> bool:
    """Whether numba can be imported, without importing it (half a second)."""
    return importlib.util.find_spec("numba") is not None


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
    from numba.core.types import unliteral

    template_of = function.get_call_template

    def get_call_template(args: Any, keywords: Any) -> Any:
        plain = {name: unliteral(kind) for name, kind in keywords.items()}
        return template_of(tuple(map(unliteral, args)), plain)

    function.get_call_template = get_call_template


@cache
def _folder() -> Path:
    """Return where the compiled code of these very sources is kept."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(here.glob("*.py")):
        digest.update(path.read_bytes())
    return here / "__pycache__" / f"numba-{digest.hexdigest()[:16]}"
