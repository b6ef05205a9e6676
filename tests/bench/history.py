"""benchmarks/history.csv: what was measured, when and on which machine."""

import csv
import platform
from datetime import UTC, datetime
from pathlib import Path

HISTORY = Path(__file__).resolve().parents[2] / "benchmarks" / "history.csv"
COLUMNS = (
    "date", "machine", "python", "workload", "engine", "requests", "steps", "cpu_s", "peak_gib",
)  # fmt: skip


def machine() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def append(rows) -> None:
    """Add rows of (workload, engine, requests, steps, CPU seconds, peak GiB or "")."""
    HISTORY.parent.mkdir(exist_ok=True)
    fresh = not HISTORY.exists()
    before = (datetime.now(UTC).date().isoformat(), machine(), platform.python_version())
    with HISTORY.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(COLUMNS)
        writer.writerows((*before, *row) for row in rows)
