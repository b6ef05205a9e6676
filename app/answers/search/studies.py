"""Studies: `twin search` in folders that the app keeps, each in a process that nothing here holds.

A study goes on when the browser closes and when the server ends. Whether its process lives is told
by a lock that the process inherits and that goes with it, however it ends: no process number is
ever trusted alone. Its journal is read, never locked.
"""

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from app.answers.job import environment
from app.answers.search.order import Order, read_order
from twin.errors import InputError
from twin.files import write_text

HOME = "SERVETWIN_HOME"
"""Environment variable: the folder that the app keeps things in."""
OUT = "search"
"""In a study's folder: what `twin search --out` was told."""
MOST_RUNNING = max(2, (os.cpu_count() or 1) - 1)
"""Studies that run on this server at a time: each takes a core."""

_ID = re.compile(r"[0-9a-f]{32}")
_ALIVE, _LAUNCH, _LOG = "alive", "launch.json", "log.txt"
_NICE = 5
_LOCK_TRIES, _LOCK_WAIT_S = 40, 0.05

Asked = Literal["", "pause", "judge"]
"""What was asked of a running study: to end and keep what is done, or to be judged as it is."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The last start of a study's process.

    Attributes:
        pid: of the process.
        started_s: when, seconds since 1970.
        trials: that it works towards.
        asked: of it since.
        summary_ns: modification time of the summary that was there before; 0: none.
    """

    pid: int
    started_s: float
    trials: int
    asked: Asked = ""
    summary_ns: int = 0


@dataclass(frozen=True, slots=True)
class Study:
    """One study.

    Attributes:
        id: 128 random bits in hexadecimal: who has it may watch and stop the study.
        folder: where all of it lies.
    """

    id: str
    folder: Path

    @property
    def out(self) -> Path:
        """Folder of the journal and of what the search writes."""
        return self.folder / OUT

    @property
    def order(self) -> Order:
        """What was asked for."""
        return read_order(self.folder)

    @property
    def alive(self) -> bool:
        """Whether its process lives."""
        with _opened(self.folder / _ALIVE) as handle:
            return handle is not None and not _locks(handle, fcntl.LOCK_SH)

    @property
    def launch(self) -> Launch | None:
        """The last start; None: it never was."""
        try:
            return Launch(**json.loads((self.folder / _LAUNCH).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def judged(self) -> dict[str, Any] | None:
        """Return the summary that its last start has written; None: it has not."""
        launch, path = self.launch, self.out / "summary.json"
        try:
            if launch is None or path.stat().st_mtime_ns == launch.summary_ns:
                return None
            found: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError):
            return None
        return found

    def last_word(self) -> str:
        """Return the one line that its process ended with; empty: none."""
        try:
            lines = (self.folder / _LOG).read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        told = next((line for line in reversed(lines) if line.startswith("error: ")), "")
        if not told and any(line.startswith("Traceback") for line in lines):
            told = lines[-1]
        return told.removeprefix("error: ").replace(f"{self.folder}/", "")[:400]

    def start(self, trials: int | None = None) -> None:
        """Start its process, or go on where it ended.

        Args:
            trials: to work towards; None: as many as were asked for.

        Raises:
            InputError: it runs already, or the server runs as many as it can.
        """
        words = [*self.order.arguments(), "--workers", "1", "--quiet", "--out", OUT]
        if trials is None:
            trials = self.order.wanted.trials
        words[words.index("--trials") + 1] = str(trials)
        with _one_starts(self.folder.parent):
            _check_room()
            self._launch(words, trials)

    def ask(self, asked: Asked) -> None:
        """Ask its process to end; whatever trials are done are kept.

        SIGTERM, which `twin search` takes like ctrl-C: a server that was started in the background
        of a script hands on a SIGINT that is ignored.
        """
        launch = self.launch
        if launch is None:
            return
        self._note(Launch(launch.pid, launch.started_s, launch.trials, asked, launch.summary_ns))
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(launch.pid, signal.SIGTERM)

    def delete(self) -> None:
        """Take away all of it.

        Raises:
            InputError: it runs.
        """
        if self.alive:
            raise InputError("this study runs", remedy="pause it first")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _launch(self, words: list[str], trials: int) -> None:
        with _opened(self.folder / _ALIVE, make=True) as lock:
            if lock is None or not _lock_soon(lock):
                raise InputError("this study runs already", remedy="wait for it, or pause it")
            summary = self.out / "summary.json"
            before_ns = summary.stat().st_mtime_ns if summary.exists() else 0
            with open(self.folder / _LOG, "wb") as log:
                process = subprocess.Popen(  # noqa: S603 (our own command, a folder we made)
                    [sys.executable, "-c", "from twin.cli import main; main()", *words],
                    cwd=self.folder,
                    env=environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    umask=0o077,
                    pass_fds=(lock,),
                )
            self._note(Launch(process.pid, time.time(), trials, summary_ns=before_ns))
        with contextlib.suppress(OSError):  # pages come first
            os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)
        _PROCESSES.append(process)

    def _note(self, launch: Launch) -> None:
        data = {name: getattr(launch, name) for name in Launch.__slots__}
        write_text(self.folder / _LAUNCH, json.dumps(data))


_PROCESSES: list[subprocess.Popen[bytes]] = []
"""Children of this server: they are waited for, so that none stays in the process table."""


def new_study(order: Order) -> Study:
    """Make the folder of a study under an id that nobody can guess; nothing runs yet.

    Raises:
        InputError: the app's folder cannot be written.
    """
    folder = home()
    study_id = secrets.token_hex(16)
    path = folder / study_id
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
        order.write(path)
    except InputError:
        shutil.rmtree(path, ignore_errors=True)
        raise
    except OSError as error:
        shutil.rmtree(path, ignore_errors=True)
        raise InputError(
            f"studies cannot be kept: {error.strerror}", remedy=f"set {HOME} to a writable folder"
        ) from None
    return Study(study_id, path)


def find_study(study_id: str) -> Study | None:
    """Return the study of an id; None: there is none. Only ids that the app makes are looked up."""
    if not is_id(study_id):
        return None
    path = home() / study_id
    return Study(study_id, path) if path.is_dir() else None


def is_id(text: str) -> bool:
    """Whether a text is an id as the app makes them."""
    return _ID.fullmatch(text) is not None


def home() -> Path:
    """Return the folder of all studies."""
    kept = os.environ.get(HOME) or Path.home() / ".local" / "share" / "servetwin"
    return Path(kept) / "studies"


def running() -> int:
    """Return how many studies run on this server, and clear away children that have ended."""
    _PROCESSES[:] = [process for process in _PROCESSES if process.poll() is None]
    folder = home()
    if not folder.is_dir():
        return 0
    found = (Study(path.name, path) for path in folder.iterdir() if is_id(path.name))
    return sum(study.alive for study in found)


def _check_room() -> None:
    if running() >= MOST_RUNNING:
        raise InputError(
            f"{MOST_RUNNING} studies run on this server, and it runs no more at a time",
            remedy="try again when one has ended, or run the command on a machine of your own",
        )


@contextlib.contextmanager
def _one_starts(folder: Path) -> Iterator[None]:
    """Let one start at a time count what runs."""
    with _opened(folder / ".starting", make=True) as handle:
        if handle is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _opened(path: Path, *, make: bool = False) -> Iterator[int | None]:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o600)
    except FileNotFoundError:
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def _locks(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_soon(handle: int) -> bool:
    """Take a lock for good; one who merely looks holds it for a moment."""
    for _ in range(_LOCK_TRIES):
        if _locks(handle, fcntl.LOCK_EX):
            return True
        time.sleep(_LOCK_WAIT_S)
    return False
