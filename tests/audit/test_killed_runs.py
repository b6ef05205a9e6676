"""A run stopped at any moment leaves its outputs whole, old or absent, and can be run again."""

import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from tests.audit import records
from twin.report.output import FILES

pytestmark = pytest.mark.audit

MOMENTS = 8
"""Stops for each signal and state of the folder."""
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
REQUESTS = 60
TIMEOUT_S = 120


def command(folder, requests=REQUESTS):
    return [
        records.TWIN, "simulate", "chat-h100", "--quiet",
        "--set", f"workload.num_requests={requests}",
        "--out", str(folder / "results"), "--json", str(folder / "figures.json"),
    ]  # fmt: skip


def start(arguments):
    # A parent that ignores SIGINT (as shells make background jobs do) would hand that down.
    return subprocess.Popen(
        arguments,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def complete(arguments):
    """Run a command to its end and return the CPU time it took, seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = start(arguments)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors.decode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def wait_until(process, cpu_s):
    """Return when a process has used so much CPU time, or has ended.

    CPU time tells how far a run has come even where the machine is busy with others.
    """
    stat = Path(f"/proc/{process.pid}/stat")
    tick_s, started = 1 / os.sysconf("SC_CLK_TCK"), time.monotonic()
    while process.poll() is None:
        if stat.exists():
            fields = stat.read_text().rpartition(")")[2].split()
            spent_s = (int(fields[11]) + int(fields[12])) * tick_s
        else:  # no Linux: the clock will do
            spent_s = time.monotonic() - started
        if spent_s >= cpu_s:
            return
        time.sleep(0.002)


def check_file(path):
    """Parse one output to its last byte."""
    if path.suffix == ".parquet":
        assert pq.read_table(path).num_rows > 0
    elif path.suffix == ".json":
        assert json.loads(path.read_text())["requests"] > 0
    elif path.suffix == ".gz":
        assert json.loads(gzip.decompress(path.read_bytes()))
    elif path.suffix == ".yaml":
        assert yaml.safe_load(path.read_text())["schema_version"] == 1
    elif path.suffix == ".html":
        assert path.read_text().rstrip().endswith("</html>")
    else:
        assert path.suffix == ".prom"
        assert path.read_text().endswith("\n")


def check_outputs(folder):
    """All files of the run, each whole, or no folder; return (results there, figures there)."""
    results, figures = folder / "results", folder / "figures.json"
    if results.exists():
        assert sorted(entry.name for entry in results.iterdir()) == sorted(FILES)
        for name in FILES:
            check_file(results / name)
    if figures.exists():
        check_file(figures)
    others = {entry.name for entry in folder.iterdir()} - {results.name, figures.name}
    assert all(name.startswith((".results.", ".figures.json.")) for name in others), others
    return results.exists(), figures.exists()


@pytest.fixture(scope="module")
def usual_s(tmp_path_factory):
    """CPU time of a run that nobody stops, seconds."""
    return complete(command(tmp_path_factory.mktemp("usual")))


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """A folder with the complete outputs of another run."""
    folder = tmp_path_factory.mktemp("older")
    complete(command(folder, requests=20))
    return folder


@pytest.mark.parametrize("before", ["nothing", "older"])
@pytest.mark.parametrize("name", SIGNALS)
def test_a_stopped_run_leaves_whole_files_or_none(name, before, usual_s, older, tmp_path):
    chance = random.Random(f"{name} {before}")
    seen, stopped = {"results": 0, "figures": 0, "leftovers": 0, "tracebacks": 0}, 0
    for moment in range(MOMENTS):
        folder = tmp_path / str(moment)
        if before == "older":
            shutil.copytree(older, folder)
        else:
            folder.mkdir()
        # Every other stop falls into the last part, where files are written.
        earliest_s = 0.6 * usual_s if moment % 2 else 0.0
        process = start(command(folder))
        wait_until(process, chance.uniform(earliest_s, usual_s))
        if process.poll() is None:
            os.kill(process.pid, getattr(signal, name))
        _, errors = process.communicate(timeout=TIMEOUT_S)
        stopped += process.returncode != 0
        results_there, figures_there = check_outputs(folder)
        if before == "older":
            assert results_there
            assert figures_there
        seen["results"] += results_there
        seen["figures"] += figures_there
        seen["leftovers"] += any(entry.name.startswith(".") for entry in folder.iterdir())
        seen["tracebacks"] += b"Traceback" in errors
        if name == "SIGINT" and process.returncode != 0:
            # Of the temporary names, too, nothing stays.
            assert not any(entry.name.startswith(".") for entry in folder.iterdir())

        if moment % 4 == 3:
            complete(command(folder))
            check_outputs(folder)
            rerun = json.loads((folder / "results" / "summary.json").read_text())
            assert rerun["requests"] == REQUESTS
    # Had every run ended before its signal, nothing would have been tried.
    assert stopped >= MOMENTS // 2
    records.write(f"kills-{name}-{before}", {"tried": MOMENTS, "stopped": stopped, **seen})
