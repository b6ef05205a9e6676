"""Processes that answer: they end with their server, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.answers.job import Job, environment
from app.answers.setup import Setup

_SERVER = """
import sys, time
from pathlib import Path
from app.answers.job import Job
from app.answers.setup import Setup
setup = Setup("chat-h100", None, {"workload.num_requests": 10_000_000})
job = Job.start("forecast", "x", {"setup": setup.as_dict()}, Path(sys.argv[1]))
print(job._process.pid, flush=True)
time.sleep(60)
"""


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _ends(pid: int, within_s: float) -> bool:
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s:
        if not _alive(pid):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_a_worker_ends_when_its_server_is_killed(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(tmp_path)], stdout=subprocess.PIPE, env=environment()
    )
    assert server.stdout is not None
    worker = int(server.stdout.readline())
    try:
        time.sleep(3)  # it is past its imports, drawing ten million requests without a word
        assert _alive(worker)
        server.kill()
        server.wait()
        assert _ends(worker, 20)
    finally:
        server.kill()
        if _alive(worker):
            os.kill(worker, signal.SIGKILL)


def test_a_cancelled_job_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    question = {"setup": Setup("chat-h100").as_dict()}
    job = Job.start("forecast", "x", question, folder)
    job.cancel()
    assert not job.running
    assert not folder.exists()
