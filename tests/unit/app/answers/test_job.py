"""Jobs: as many at a time as the machine has cores, whoever asked."""

import time
from pathlib import Path

from app.answers import job
from app.answers.job import Job, room
from app.answers.setup import Setup


def test_a_server_works_on_so_many_at_a_time(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(job, "MOST_AT_WORK", 1)
    assert room()
    question = {"setup": Setup("chat-h100").as_dict()}
    one = Job.start("forecast", "x", question, tmp_path)
    assert not room()
    one.cancel()
    assert not one.running
    assert room()


def test_a_job_answers_and_can_be_read(tmp_path: Path) -> None:
    setup = Setup("chat-h100", None, {"workload.num_requests": 20})
    one = Job.start("forecast", "x", {"setup": setup.as_dict()}, tmp_path)
    until = time.monotonic() + 120
    while one.running and time.monotonic() < until:
        time.sleep(0.1)
    answer = one.answer()
    assert answer is not None, one.problem()
    assert answer["summary"]["requests"] == 20
