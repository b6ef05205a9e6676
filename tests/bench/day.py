"""A synthetic day: 500,000 requests on 32 replicas, and shorter days beside it.

Each in a process of its own, with steps sampled, since a day has some hundred million. It prints
CPU seconds of the simulation and peak memory of the process, and appends both to
benchmarks/history.csv. Time per request that stays the same means that time is linear in requests.
"""

import resource
import subprocess
import sys
import time

from tests.bench.history import append
from twin.engine import simulate
from twin.load import load_scenario

DAY_S = 86_400
SIZES = (50_000, 150_000, 500_000)
REPLICAS = 32


def run_one(requests: int) -> None:
    """Simulate a day (or as much of it as so many requests last) and print what it took."""
    rate = SIZES[-1] / DAY_S
    scenario = load_scenario(
        "chat-h100",
        {
            "workload.num_requests": requests,
            "workload.arrivals": {"kind": "poisson", "rate": rate},
            "cluster.replicas": REPLICAS,
            "recording": "sampled",
        },
    )
    started = time.process_time()
    result = simulate(scenario)
    seconds = time.process_time() - started
    finished = int((result.requests.outcome == 0).sum())
    assert finished == requests, (finished, requests)
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{requests} {result.steps_taken} {seconds:.2f} {peak_gb:.2f}")


def main() -> None:
    """Run all sizes."""
    if len(sys.argv) > 1:
        run_one(int(sys.argv[1]))
        return
    rows = []
    for size in SIZES:
        command = [sys.executable, "-m", "tests.bench.day", str(size)]
        out = subprocess.run(command, check=True, capture_output=True, text=True)
        _, steps, seconds, peak_gb = out.stdout.split()
        name = f"synthetic day, {REPLICAS} replicas"
        rows.append((name, "fast", size, int(steps), float(seconds), float(peak_gb)))
        print(
            f"{size:>9,} requests  {int(steps):>13,} steps  {float(seconds):7.1f} CPU s  "
            f"{1e6 * float(seconds) / size:6.0f} us a request  peak {peak_gb} GiB"
        )
    append(rows)


if __name__ == "__main__":
    main()
