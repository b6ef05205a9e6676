"""CPU seconds of a cold start: `twin --help` and a simulation of 100 requests.

Asserts the work done (exit code, requests finished), prints minimum, median and maximum of the
user + system time of whole processes. The bar is 2 s.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

RUNS = 5
TWIN = [sys.executable, "-c", "from twin.cli import main; main()"]
SIMULATE = [*TWIN, "simulate", "chat-h100", "--set", "workload.num_requests=100", "--json", "-"]


def cpu_seconds(command: list[str]) -> tuple[float, str]:
    """Return (user + system seconds of the process, its standard output)."""
    before = os.times()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after = os.times()
    spent = after.children_user - before.children_user
    return spent + after.children_system - before.children_system, done.stdout


def report(name: str, command: list[str], check) -> None:
    """Time a command RUNS times after a warm-up."""
    cpu_seconds(command)
    times = []
    for _ in range(RUNS):
        seconds, output = cpu_seconds(command)
        check(output)
        times.append(seconds)
    low, middle, high = min(times), statistics.median(times), max(times)
    print(f"{name:<34} CPU s: min {low:.2f}  median {middle:.2f}  max {high:.2f}  (bar 2.00)")


def check_help(output: str) -> None:
    """The help lists the commands."""
    assert "simulate" in output
    assert "conformance" in output


def check_simulation(output: str) -> None:
    """All hundred requests finished."""
    assert json.loads(output)["finished"] == 100


def main() -> None:
    """Time both."""
    os.chdir(Path(__file__).resolve().parents[2])
    report("twin --help", [*TWIN, "--help"], check_help)
    report("twin simulate, 100 requests", SIMULATE, check_simulation)


if __name__ == "__main__":
    main()
