"""Reads and writes of KV blocks on a local disk: through the page cache, and past it.

Neither PyTorch nor Triton is needed here. Modes, by direction:

    read    direct     past the page cache (O_DIRECT)
            buffered   through it, when it holds nothing of the file
            cached     out of it
    write   direct     past it
            buffered   into it; nobody waits for the disk
            synced     into it, then fdatasync

A block is read or written in so many equal fragments, one system call each, at random places; the
queue depth is the number of threads that do so side by side.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernels.probes.block_io import MODES, BlockFiles, StoragePoint, StorageRow, prime, run_point
from kernels.probes.direct_io import (
    PAGE_BYTES,
    DirectIo,
    StorageError,
    nameless_file,
    probe_direct_io,
)

_SIZES = tuple(2**power for power in (12, 14, 16, 18, 20, 22))
_MIDDLES = (2**19, 2**17)
_DEPTHS = {"direct": (1, 4, 16, 32)}
_OTHER_DEPTHS = (1, 16)
_FRAGMENTED = ((2**20, 16), (2**18, 4))
_FILE_BYTES = 256 * 2**20
_MARGIN_BYTES = 256 * 2**20
_LEAST_BOX_S = 0.05
_MOST_BOX_S = 3.0


@dataclass(frozen=True, slots=True)
class StorageReport:
    """A measured folder.

    Attributes:
        rows: in the order of the plan.
        left_out: points that the time did not suffice for.
    """

    direct_io: DirectIo
    rows: tuple[StorageRow, ...]
    left_out: int


Progress = Callable[[int, int, str, float], None]
"""Told (points done, points in all, the point at work, seconds left)."""


def plan(*, direct: bool, file_bytes: int = _FILE_BYTES) -> tuple[StoragePoint, ...]:
    """Return the points to measure, the most telling first: whole sweeps at depth 1, then more.

    Args:
        direct: whether O_DIRECT works.
        file_bytes: of the files; what is in flight together must fit.
    """
    modes = [
        (direction, mode)
        for direction, names in MODES.items()
        for mode in names
        if direct or mode != "direct"
    ]
    shapes = [(size, 1) for size in _SIZES] + list(_FRAGMENTED)
    points = [
        StoragePoint(direction, mode, size, depth, fragments)
        for depth in sorted({*_OTHER_DEPTHS, *_DEPTHS["direct"]})
        for size, fragments in shapes
        for direction, mode in modes
        if depth in _DEPTHS.get(mode, _OTHER_DEPTHS)
    ]
    middles = [StoragePoint(*mode, size) for size in _MIDDLES for mode in modes]
    first = [point for point in points if point.queue_depth == 1]
    deep = [point for point in points if point.queue_depth > 1]
    return tuple(
        point
        for point in (*first, *middles, *deep)
        if point.block_bytes * point.queue_depth <= file_bytes
    )


def measure_storage(
    folder: Path,
    *,
    budget_s: float,
    file_bytes: int = _FILE_BYTES,
    points: tuple[StoragePoint, ...] | None = None,
    progress: Progress = lambda _done, _total, _what, _left_s: None,
) -> StorageReport:
    """Measure a folder's disk within a budget.

    Two files of `file_bytes` are made in it, without names: however this ends, they are gone.

    Raises:
        StorageError: no such folder, too little room, or data that came back otherwise.
    """
    started_s = time.monotonic()
    _check_room(folder, file_bytes)
    direct_io = probe_direct_io(folder)
    direct = not direct_io.problem
    wanted = plan(direct=direct, file_bytes=file_bytes) if points is None else points
    rows: list[StorageRow] = []
    with _files(folder, file_bytes, direct=direct) as files:
        for done, point in enumerate(wanted):
            left_s = budget_s - (time.monotonic() - started_s)
            if left_s <= 0:
                break
            progress(done, len(wanted), str(point), left_s)
            # Half of a box is left for making the page cache what the mode wants it to be.
            box_s = min(_MOST_BOX_S, max(_LEAST_BOX_S, left_s / (len(wanted) - done) / 2))
            rows.append(run_point(files, point, box_s))
    return StorageReport(direct_io, tuple(rows), len(wanted) - len(rows))


@contextmanager
def _files(folder: Path, num_bytes: int, *, direct: bool) -> Iterator[BlockFiles]:
    with (
        nameless_file(folder, direct=direct) as reading,
        nameless_file(folder, direct=direct) as writing,
    ):
        for buffered, _ in (reading, writing):
            prime(buffered, num_bytes)
        yield BlockFiles(reading, writing, num_bytes)


def _check_room(folder: Path, file_bytes: int) -> None:
    if not folder.is_dir():
        raise StorageError(f"{folder}: is not a folder")
    if file_bytes < max(_SIZES) or file_bytes % PAGE_BYTES:
        raise StorageError(f"file_bytes is {file_bytes}; {max(_SIZES)} or more whole pages needed")
    free = os.statvfs(folder)
    room, needed = free.f_bavail * free.f_frsize, 2 * file_bytes + _MARGIN_BYTES
    if room < needed:
        raise StorageError(
            f"{folder}: has {room // 2**20} MiB of room; {needed // 2**20} MiB are needed"
        )
