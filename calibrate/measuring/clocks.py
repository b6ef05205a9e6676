"""Clocks and driver as `nvidia-smi` tells them; where it is absent, nobody does."""

import shutil
import subprocess
from dataclasses import dataclass

_FIELDS = "clocks.sm,clocks.mem,clocks.max.sm,driver_version"
_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Clocks:
    """What a GPU runs at now."""

    sm_hz: float
    memory_hz: float
    most_sm_hz: float
    driver: str


def read_clocks(index: str = "0") -> Clocks | None:
    """Return the clocks of one GPU.

    Args:
        index: its number, or its UUID, as `nvidia-smi` knows it.

    None if there is no `nvidia-smi`, or it does not tell: then rows carry no clocks.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, f"--id={index}", f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(  # noqa: S603  the program's own options
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        ).stdout
        return parsed(told)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def parsed(told: str) -> Clocks:
    """Return the clocks in a line of `nvidia-smi`: `1980, 3201, 1980, 570.86.15`.

    Raises:
        ValueError: a field is not a number, as in `[N/A]`.
    """
    sm, memory, most, driver = (cell.strip() for cell in told.strip().splitlines()[0].split(","))
    return Clocks(1e6 * float(sm), 1e6 * float(memory), 1e6 * float(most), driver)
