"""`JournalFile`: a study in one file of JSON lines, whole after any number of killed writers."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optuna.storages.journal import BaseJournalBackend

from twin.search.study.locks import Locks


class JournalFile(BaseJournalBackend):
    """Optuna's journal format; `optuna.storages.journal.JournalFileBackend` reads it, too.

    Unlike that one it holds a lock that dies with its holder, takes away the torn line that a
    killed writer may leave, and waits for the disk only when it is told to (`settle`): a trial
    writes some twenty lines, and what a process wrote outlives it without.

    Args:
        path: the file; made if there is none.
        locks: of the study.
    """

    def __init__(self, path: Path, locks: Locks) -> None:
        self._path = path
        self._locks = locks
        self._starts = [0]
        with open(path, "ab"):
            pass

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """Yield the entries from a number on."""
        return whole_lines(self._path, self._starts, log_number_from)

    def append_logs(self, logs: Iterable[dict[str, Any]]) -> None:
        """Add entries."""
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        with (
            self._locks.exclusive(),
            self._named(),
            open(self._path, "r+b", buffering=0) as file,
        ):
            end = _whole_lines_end(file.fileno())
            data = memoryview(lines.encode())
            while data:
                written = os.pwrite(file.fileno(), data, end)
                end, data = end + written, data[written:]

    def settle(self) -> None:
        """Wait until the disk has everything."""
        with self._named(), open(self._path, "rb") as file:
            os.fsync(file.fileno())

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in errors of calls that know but its number, such as of a full disk."""
        try:
            yield
        except OSError as error:
            if error.filename is None:
                error.filename = str(self._path)
            raise


def whole_lines(path: Path, starts: list[int], first: int) -> Iterator[dict[str, Any]]:
    """Yield the entries of a journal from a number on; a torn last line is left out.

    Args:
        path: the file.
        starts: byte offset of each line read so far, and of the next one; grows.
        first: number of the first entry.
    """
    with open(path, "rb") as file:
        at = min(first, len(starts) - 1)
        file.seek(starts[at])
        whole = file.read().rpartition(b"\n")[0]
    for number, line in enumerate(whole.split(b"\n") if whole else [], start=at):
        if number == len(starts) - 1:
            starts.append(starts[-1] + len(line) + 1)
        if number >= first:
            yield json.loads(line)


def _whole_lines_end(handle: int) -> int:
    """Return where the last whole line ends, cutting what a killed writer left behind it."""
    size = os.fstat(handle).st_size
    end = size
    while end and os.pread(handle, 1, end - 1) != b"\n":
        end -= 1
    if end < size:
        os.ftruncate(handle, end)
    return end
