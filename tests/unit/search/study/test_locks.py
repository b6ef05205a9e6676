"""Locks that die with their holder."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.postgres import running_postgres
from twin.search.study.locks import FileLocks
from twin.search.study.postgres_locks import PostgresLocks

HOLDER = """
import sys, time
from pathlib import Path
from twin.search.study.locks import FileLocks
locks = FileLocks(Path(sys.argv[1]))
locks.announce("other")
with locks.exclusive():
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_killed_holder_lets_go_of_everything(tmp_path):
    locks = FileLocks(tmp_path / "locks")
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "locks")], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    assert locks.lives("other")
    entered = threading.Event()

    def enter():
        with FileLocks(tmp_path / "locks").exclusive():
            entered.set()

    thread = threading.Thread(target=enter)
    thread.start()
    assert not entered.wait(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert entered.wait(5)
    thread.join()
    assert not locks.lives("other")
    assert not locks.lives("never there")


def test_the_last_to_leave_takes_the_folder_along(tmp_path):
    one, two = FileLocks(tmp_path / "locks"), FileLocks(tmp_path / "locks")
    one.announce("a")
    two.announce("b")
    assert one.lives("b")
    assert two.lives("a")
    one.leave()
    assert not two.lives("a")
    assert two.lives("b")
    two.leave()
    assert not (tmp_path / "locks").exists()
    with one.exclusive(), one.exclusive():  # nests, and makes the folder again
        assert (tmp_path / "locks").exists()


def test_threads_of_one_process_exclude_each_other(tmp_path):
    locks, inside, most = FileLocks(tmp_path / "locks"), [], []

    def enter():
        for _ in range(20):
            with locks.exclusive():
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0005)
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 80
    assert max(most) == 1


@pytest.fixture(scope="module")
def url():
    with running_postgres() as found:
        yield found


def test_a_database_session_that_ends_lets_go(url):
    one, two = PostgresLocks(url, "study"), PostgresLocks(url, "study")
    one.announce("a")
    assert one.lives("a")
    assert two.lives("a")
    assert not two.lives("b")
    entered = threading.Event()

    def enter():
        with two.exclusive():
            entered.set()

    with one.exclusive(), one.exclusive():
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.1)
    assert entered.wait(5)
    thread.join()
    one.leave()
    deadline = time.monotonic() + 5  # the server closes a session in its own time
    while two.lives("a"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    two.leave()
