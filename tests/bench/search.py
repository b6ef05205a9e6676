"""Wall and CPU seconds of whole searches: Llama-3.1-8B on one H100, a part of an Azure trace.

Trials see ten minutes of the trace (some 3,000 requests); judging the winner is left out, and so
is compiling, where numba is installed. Two workers. The bars on two cores: 200 trials in 120 s,
1,000 in 12 minutes. Needs the measured data folder (SERVETWIN_DATA). Asserts that exactly so many
trials finished and that they were simulated, and appends what was measured to
benchmarks/searches.csv.

`python -m tests.bench.search [TRIALS]...`: 200 and 1,000 if none are named.
"""

import csv
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.history import machine
from tests.bench.traces import DATA
from twin.search.evaluate import prepare
from twin.search.problem import Limits
from twin.search.setting import make_problem
from twin.search.study.coordinator import run_study
from twin.search.study.options import StudyOptions

RECORD = Path(__file__).resolve().parents[2] / "benchmarks" / "searches.csv"
COLUMNS = (
    "date", "machine", "python", "sampler", "halving", "trials", "workers", "complete", "pruned",
    "infeasible", "wall_s", "cpu_s", "load_before",
)  # fmt: skip
SEEN_S, SHARE, WORKERS = 600.0, 0.7, 2
BARS_S = {200: 120.0, 1000: 720.0}


def problem():
    """Return what is searched: trials see `SEEN_S` seconds of the trace."""
    return make_problem(
        "chat-h100",
        {
            "workload.path": str(DATA / "traces" / "azure_2023_conv.csv"),
            "workload.window_s": [0.0, SEEN_S / SHARE],
        },
        engine="vllm",
        objectives=("goodput_per_gpu_hour",),
        limits=Limits(gpus=1),
        search_share=SHARE,
    )


def measure(trials):
    """Run a search; return its row."""
    load, before, started = os.getloadavg()[0], os.times(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        options = StudyOptions(out=Path(folder), trials=trials, workers=WORKERS)
        result = run_study(problem(), options)
    wall_s, after = time.perf_counter() - started, os.times()
    cpu_s = sum(after[:4]) - sum(before[:4])
    states = Counter(trial.state for trial in result.trials)
    assert [trial.number for trial in result.trials] == list(range(trials))
    for trial in result.trials:
        if trial.state == "complete":
            assert trial.evaluation.figures["requests"] > 2500
    assert states["complete"] >= trials // 20, states
    print(
        f"{trials:>5} trials  {wall_s:7.1f} s  {cpu_s:7.1f} CPU s  bar "
        f"{BARS_S.get(trials, float('nan')):.0f} s  {dict(states)}  load before {load:.1f}"
    )
    return (
        datetime.now(UTC).date().isoformat(), machine(), platform.python_version(),
        result.sampler, result.halving, trials, WORKERS, states["complete"], states["pruned"],
        states["infeasible"], round(wall_s, 1), round(cpu_s, 1), round(load, 1),
    )  # fmt: skip


def main():
    """Run the searches that were asked for."""
    wanted = [int(word) for word in sys.argv[1:]] or list(BARS_S)
    prepare(problem(), 1000)
    rows = [measure(trials) for trials in wanted]
    fresh = not RECORD.exists()
    RECORD.parent.mkdir(exist_ok=True)
    with RECORD.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(COLUMNS)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
