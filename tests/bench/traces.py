"""CPU seconds of whole production traces: the reference engine and the fast one, in one process.

Simulation only, reading the trace left out. Needs the measured data folder (SERVETWIN_DATA). It
asserts that both engines finish every request in the same number of steps, and appends what was
measured to benchmarks/history.csv. `--fast` leaves the reference out.
"""

import csv
import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from twin.engine import simulate
from twin.load import load_scenario

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SERVETWIN_DATA") or ROOT.parent / "shared" / "data")
HISTORY = ROOT / "benchmarks" / "history.csv"
COLUMNS = ("date", "machine", "python", "workload", "engine", "requests", "steps", "cpu_s")
AZURE = str(DATA / "traces" / "azure_2023_conv.csv")
MOONCAKE = str(DATA / "traces" / "mooncake_conversation.jsonl")
RUNS = {
    "Azure conversation, 4 replicas": {"workload.path": AZURE, "cluster.replicas": 4},
    "Azure conversation x 0.25, 1 replica": {
        "workload.path": AZURE,
        "workload.rate_scale": 0.25,
    },
    "Mooncake conversation, 8 replicas": {
        "workload.path": MOONCAKE,
        "cluster.replicas": 8,
        "policy.max_model_len": 131072,
    },
}


def measure(name, engine):
    """Run a trace on an engine; return (requests, steps, CPU seconds)."""
    scenario = load_scenario("chat-h100", RUNS[name])
    started = time.process_time()
    result = simulate(scenario, engine=engine)
    seconds = time.process_time() - started
    finished = int((result.requests.outcome == 0).sum())
    assert finished == len(result.requests), (name, engine, finished, len(result.requests))
    return finished, len(result.steps), seconds


def machine():
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def append(rows):
    """Add rows to the history."""
    HISTORY.parent.mkdir(exist_ok=True)
    fresh = not HISTORY.exists()
    with HISTORY.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(COLUMNS)
        writer.writerows(rows)


def main() -> None:
    """Run each trace once on each engine."""
    engines = ("fast",) if "--fast" in sys.argv[1:] else ("fast", "reference")
    day, where = datetime.now(UTC).date().isoformat(), machine()
    rows = []
    for name in RUNS:
        found = {engine: measure(name, engine) for engine in engines}
        assert len({(requests, steps) for requests, steps, _ in found.values()}) == 1, name
        for engine, (requests, steps, seconds) in found.items():
            rows.append(
                (day, where, platform.python_version(), name, engine, requests, steps,
                 round(seconds, 2))
            )  # fmt: skip
            print(
                f"{name:<38} {engine:<10} {seconds:7.1f} CPU s  "
                f"{requests:,} requests  {steps:,} steps"
            )
        if "reference" in found:
            print(f"{'':<38} {found['reference'][2] / found['fast'][2]:.1f} times as fast")
    append(rows)


if __name__ == "__main__":
    main()
