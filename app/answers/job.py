"""`Job`: a question asked of a process of its own, which can be watched and ended."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

from twin.files import write_text

QUESTION, PROGRESS, ANSWER, PROBLEM = "question.json", "progress.json", "answer.json", "problem.txt"


@dataclass(frozen=True, slots=True)
class Done:
    """How far a job is.

    Attributes:
        done, total: pieces; total None: nobody knows.
        what: of what: `requests`, `runs`.
    """

    done: int
    total: int | None
    what: str


MOST_AT_WORK = max(2, os.cpu_count() or 1)
"""Jobs of all visitors that work at a time: more would only slow each other down."""

_STARTED: "WeakSet[Job]" = WeakSet()


def room() -> bool:
    """Whether another job may start now."""
    return sum(job.running for job in list(_STARTED)) < MOST_AT_WORK


@dataclass(slots=True, weakref_slot=True, eq=False)
class Job:
    """A process that answers one question.

    Attributes:
        kind: of `app.answers.kinds.KINDS`.
        digest: of the question.
        folder: where question, progress and answer lie; nobody else's.
    """

    kind: str
    digest: str
    folder: Path
    _process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, kind: str, digest: str, question: Mapping[str, Any], folder: Path) -> "Job":
        """Start a process that answers a question of a kind.

        Args:
            kind: of `app.answers.kinds.KINDS`.
            digest: what tells the question from others.
            question: what that kind takes.
            folder: an empty one.
        """
        write_text(folder / QUESTION, json.dumps({"kind": kind, "question": question}))
        command = [sys.executable, "-P", "-m", "app.answers.worker", str(folder)]
        process = subprocess.Popen(  # noqa: S603 (our own module, a folder we made)
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment()
        )
        job = cls(kind, digest, folder, process)
        _STARTED.add(job)
        return job

    @property
    def running(self) -> bool:
        """Whether it still works."""
        return self._process.poll() is None

    def progress(self) -> Done | None:
        """Return how far it is; None: it has not said yet."""
        try:
            said = json.loads((self.folder / PROGRESS).read_text())
        except (OSError, ValueError):
            return None
        return Done(int(said["done"]), said["total"], str(said["what"]))

    def answer(self) -> dict[str, Any] | None:
        """Return its answer; None: there is none."""
        try:
            found: dict[str, Any] = json.loads((self.folder / ANSWER).read_text())
        except (OSError, ValueError):
            return None
        return found

    def problem(self) -> str:
        """Return why a job that has ended gave no answer, in one line."""
        try:
            return (self.folder / PROBLEM).read_text().strip()
        except OSError:
            code = self._process.poll()
            return f"the process that worked on it ended (code {code}) without an answer"

    def clear(self) -> None:
        """Delete the folder of a job that has ended."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def cancel(self) -> None:
        """End it; what it has not written down is lost."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(2)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self.clear()


def environment() -> dict[str, str]:
    """Let the process find this very `app`, wherever the server was started from."""
    here = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": here if not known else f"{here}{os.pathsep}{known}"}
