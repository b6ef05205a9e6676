"""What the commands of this package need: told in one line where it is missing."""

import sys
from importlib.util import find_spec

HOW = (
    "from a clone: pip install -e '.[kernels]', and a torch made for Triton 3.6 "
    "(docs/guide/calibrate.md)"
)


def check_modules(command: str, names: tuple[str, ...] = ("numpy", "torch", "triton")) -> None:
    """End the program with one line and exit code 2 if a module is missing.

    Args:
        command: how it was called, as in `python -m kernels.checking`.
        names: modules that it needs.
    """
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        print(f"error: {command} needs {' and '.join(missing)}; {HOW}", file=sys.stderr)
        sys.exit(2)
