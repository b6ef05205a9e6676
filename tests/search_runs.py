"""Runs of a small search as processes of their own, which tests may kill.

As a script: `python -m tests.search_runs OUT TRIALS WORKERS [URL]`.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from twin.search.problem import Limits
from twin.search.setting import make_problem
from twin.search.study.coordinator import run_study
from twin.search.study.options import StudyOptions
from twin.search.study.storage import open_store

ROOT = Path(__file__).resolve().parents[1]
REQUESTS = 40


def small_problem(requests=REQUESTS, objectives=("p99_ttft_s",), **overrides):
    """A problem whose trials take some tens of milliseconds."""
    return make_problem(
        "chat-h100",
        {"workload.num_requests": requests, **overrides},
        engine="vllm",
        objectives=objectives,
        limits=Limits(gpus=1),
    )


def start(out, trials, workers, url=None):
    """Start a search as a process group."""
    arguments = [str(out), str(trials), str(workers), *([url] if url else [])]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.search_runs", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


class Kills:
    """Kills workers of a search at random moments, and at times the whole search.

    Args:
        out, trials, workers, url: of the search.
        seed: of the moments.
        all_every: which kill takes everything and starts the command anew; 0: none.
    """

    def __init__(self, out, trials, workers, url=None, *, seed=0, all_every=4):
        self.arguments = (out, trials, workers, url)
        self.chance = random.Random(seed)
        self.all_every = all_every
        self.done = self.restarts = 0
        self.store = None

    def run(self, wanted):
        """Run the search to its end, with so many kills on the way; returns its trials."""
        process = start(*self.arguments)
        due = 0
        try:
            while self.done < wanted and process.poll() is None:
                time.sleep(self.chance.uniform(0, 0.2))
                finished = sum(trial.state.is_finished() for trial in self.trials())
                victims = self.workers()
                # Some trials between two kills: they should strike at all stages of a search.
                if finished < due or not victims or process.poll() is not None:
                    continue
                due = finished + self.chance.randint(1, 5)
                self.done += 1
                if self.all_every and self.done % self.all_every == 0:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    self.restarts += 1
                    process = start(*self.arguments)
                else:
                    _kill(self.chance.choice(victims))
            _, errors = process.communicate(timeout=600)
            assert process.returncode == 0, errors.decode()
            return self.trials()
        finally:
            if self.store is not None:
                self.store.locks.leave()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def trials(self):
        """What the storage has now."""
        out, _, _, url = self.arguments
        if url is None and not (Path(out) / "study.journal").exists():
            return []
        if self.store is None:
            self.store = open_store(url, Path(out), "looking on")
        studies = self.store.storage.get_all_studies()
        return self.store.storage.get_all_trials(studies[0]._study_id) if studies else []

    def workers(self):
        """Process numbers of those that hold a trial now."""
        holders = [
            trial.user_attrs["worker"] for trial in self.trials() if not trial.state.is_finished()
        ]
        return [holder["pid"] for holder in holders if holder["id"] and _alive(holder["pid"])]


def check_counted_once(trials, wanted):
    """Exactly so many trials, numbered without a gap, each finished and with its result."""
    assert [trial.number for trial in trials] == list(range(wanted))
    assert all(trial.state.name in ("COMPLETE", "PRUNED") for trial in trials)
    for trial in trials:
        result = trial.user_attrs["result"]
        assert "workers died" not in (result["reason"] or "")
        assert (trial.state.name == "COMPLETE") == (result["state"] == "complete")
        if result["state"] == "complete":
            assert trial.values == list(result["objectives"].values())


def _kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _alive(pid):
    """Whether a process runs; one that was killed may still be listed, as a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def main():
    """Run a search."""
    out, trials, workers, *url = sys.argv[1:]
    options = StudyOptions(
        out=Path(out),
        trials=int(trials),
        workers=int(workers),
        storage=url[0] if url else None,
        halving=True,  # so few requests represent nothing, and rungs are to be cut short as well
    )
    run_study(small_problem(), options)


if __name__ == "__main__":
    main()
