"""Files opened past the page cache (O_DIRECT), and what a folder's file system asks of them.

Neither PyTorch nor Triton is needed here.
"""

import contextlib
import errno
import mmap
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

PAGE_BYTES = 4096
_TRIED = (1, 4, 512, 4096)
"""Alignments that are tried, in bytes: any, a word, a sector, a page."""
_MEMORY = ("tmpfs", "ramfs")
_PROBED_BYTES = 4 * PAGE_BYTES
_MOUNTS = Path("/proc/self/mountinfo")


class StorageError(RuntimeError):
    """A folder that cannot be measured, or data that came back otherwise; one line."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One of eight combinations of aligned (a page) and misaligned (by one byte)."""

    buffer: bool
    offset: bool
    length: bool
    error: str
    """Name of the error, EINVAL for example; empty: it is accepted."""


@dataclass(frozen=True, slots=True)
class DirectIo:
    """What a folder's file system says to O_DIRECT.

    Attributes:
        problem: why there is none; empty: there is.
        least_bytes: least alignment accepted of `buffer`, `offset` and `length`, of 1, 4, 512 and
            4096; an axis is absent where even a page is refused.
        combinations: all eight of aligned and misaligned.
    """

    problem: str
    least_bytes: dict[str, int] = field(default_factory=dict)
    combinations: tuple[Refusal, ...] = ()


class AlignedBuffer:
    """Memory that begins on a page, as direct I/O asks."""

    def __init__(self, num_bytes: int) -> None:
        self._map = mmap.mmap(-1, max(num_bytes, 1) + PAGE_BYTES)
        self._view = memoryview(self._map)

    def part(self, start: int, num_bytes: int) -> memoryview:
        """Return `num_bytes` of it from `start` on."""
        return self._view[start : start + num_bytes]

    def close(self) -> None:
        """Give the memory back; parts must be released first."""
        self._view.release()
        self._map.close()


@contextlib.contextmanager
def nameless_file(folder: Path, *, direct: bool) -> Iterator[tuple[int, int | None]]:
    """Yield descriptors of an empty file that has no name, so that nothing can leave it behind.

    Yields:
        (through the page cache, past it or None if `direct` is false), both for reading and
        writing.

    Raises:
        OSError: the folder takes no files, or no O_DIRECT.
    """
    handle, name = tempfile.mkstemp(prefix=".kv-storage-", dir=folder)
    beside = None
    try:
        try:
            if direct:
                beside = os.open(name, os.O_RDWR | os.O_DIRECT)
        finally:
            os.unlink(name)
        yield handle, beside
    finally:
        os.close(handle)
        if beside is not None:
            os.close(beside)


def probe_direct_io(folder: Path) -> DirectIo:
    """Try reads past the page cache, aligned and not.

    Raises:
        StorageError: the folder takes no files at all.
    """
    if not hasattr(os, "O_DIRECT"):
        return DirectIo("this operating system has no O_DIRECT")
    kind = file_system(folder)[1]
    if kind in _MEMORY:
        return DirectIo(f"{kind} is memory: there is no disk behind the page cache")
    try:
        with nameless_file(folder, direct=False):
            pass
    except OSError as error:
        raise StorageError(f"{folder}: takes no files: {error.strerror}") from None
    try:
        with nameless_file(folder, direct=True) as (handle, direct):
            assert direct is not None  # noqa: S101  it was asked for
            os.pwrite(handle, os.urandom(_PROBED_BYTES), 0)
            os.fdatasync(handle)
            buffer = AlignedBuffer(2 * PAGE_BYTES)
            try:
                return _probe(direct, buffer, kind)
            finally:
                buffer.close()
    except OSError as error:
        return DirectIo(_refused(kind, _name(error)))


def _probe(direct: int, buffer: AlignedBuffer, kind: str) -> DirectIo:
    plain = _try_read(direct, buffer, 0, 0, PAGE_BYTES)
    if plain:
        return DirectIo(_refused(kind, plain))
    combinations = tuple(
        Refusal(*aligned, error=_try_read(direct, buffer, *_misaligned(aligned, 1)))
        for aligned in product((True, False), (True, False), (True, False))
    )
    least = {}
    for axis, name in enumerate(("buffer", "offset", "length")):
        others = (axis != 0, axis != 1, axis != 2)
        for step in _TRIED:
            if not _try_read(direct, buffer, *_misaligned(others, step)):
                least[name] = step
                break
    return DirectIo("", least, combinations)


def _misaligned(aligned: tuple[bool, bool, bool], by: int) -> tuple[int, int, int]:
    """Return (start in the buffer, offset in the file, length), off by so many bytes."""
    buffer, offset, length = aligned
    return (
        0 if buffer else by,
        PAGE_BYTES if offset else PAGE_BYTES + by,
        PAGE_BYTES if length else PAGE_BYTES + by,
    )


def _try_read(handle: int, buffer: AlignedBuffer, start: int, offset: int, length: int) -> str:
    """Return the name of the error that a read gives; empty if it reads."""
    view = buffer.part(start, length)
    try:
        os.preadv(handle, [view], offset)
    except OSError as error:
        return _name(error)
    finally:
        view.release()
    return ""


def _refused(kind: str, name: str) -> str:
    return f"{kind or 'the file system'} refuses O_DIRECT ({name})"


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, error.strerror or "error")


def file_system(folder: Path) -> tuple[str, str]:
    """Return (device, type) of the file system that a folder lies on; empty where unknown."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "", ""
    place, found, longest = str(folder.resolve()), ("", ""), -1
    for line in lines:
        # Fields: id, parent, major:minor, root, mount point, options …, "-", type, source.
        head, _, tail = line.partition(" - ")
        point = head.split()[4].replace("\\040", " ")
        beneath = place == point or place.startswith(point.rstrip("/") + "/")
        if beneath and len(point) >= longest:
            kind, source = tail.split()[:2]
            found, longest = (source, kind), len(point)
    return found
