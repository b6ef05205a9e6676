"""Who may change a study just now, and which workers live: answered by locks that die with them.

A lock that the operating system or the database holds for a process goes when the process does,
however it ends. So nothing here rests on clocks, heartbeats or process numbers.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from twin.errors import InputError

_EXCLUSIVE = "exclusive"


class Locks(Protocol):
    """What the workers of one study agree by."""

    def exclusive(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which nobody else changes the study; it may be nested."""

    def announce(self, worker: str) -> None:
        """Let others see that a worker lives, until this process ends or `leave` is called."""

    def lives(self, worker: str) -> bool:
        """Whether a worker that announced itself still lives."""

    def leave(self) -> None:
        """Take back what was announced."""


class FileLocks:
    """Locks of files in a folder: for one machine, or many that share a file system with locks.

    Args:
        folder: where they lie; made when first needed, and gone when the last worker leaves.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = threading.RLock()
        self._depth = 0
        self._announced: dict[str, int] = {}

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Return a context in which nobody else changes the study; it may be nested."""
        with self._thread:
            handle = None if self._depth else _locked(self._folder / _EXCLUSIVE)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if handle is not None:
                    os.close(handle)

    def announce(self, worker: str) -> None:
        """Let others see that a worker lives, until this process ends or `leave` is called."""
        if worker not in self._announced:
            self._announced[worker] = _locked(self._folder / worker)

    def lives(self, worker: str) -> bool:
        """Whether a worker that announced itself still lives."""
        if worker in self._announced:
            return True
        return _is_locked(self._folder / worker)

    def leave(self) -> None:
        """Take back what was announced; the last one takes the folder along."""
        for worker, handle in self._announced.items():
            (self._folder / worker).unlink(missing_ok=True)
            os.close(handle)
        self._announced.clear()
        if not self._folder.is_dir():
            return
        with self.exclusive():
            for path in self._folder.iterdir():
                if path.name != _EXCLUSIVE and not _is_locked(path):
                    path.unlink(missing_ok=True)
            if [path.name for path in self._folder.iterdir()] == [_EXCLUSIVE]:
                (self._folder / _EXCLUSIVE).unlink()
                with contextlib.suppress(OSError):  # another has just come
                    self._folder.rmdir()


def _locked(path: Path) -> int:
    """Return an open file with its lock held, made if need be; waits while another holds it."""
    import fcntl

    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            _make(path.parent)
            continue
        fcntl.flock(handle, fcntl.LOCK_EX)
        if _still_names(path, handle):
            return handle
        os.close(handle)  # deleted while we waited: others lock the file that is there now


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be made: {error.strerror}",
            where=str(folder),
            remedy="name a place in a folder that exists and can be written",
        ) from None


def _is_locked(path: Path) -> bool:
    import fcntl

    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _still_names(path: Path, handle: int) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    held = os.fstat(handle)
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)
