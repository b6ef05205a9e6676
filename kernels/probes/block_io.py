"""Reads and writes of blocks, by threads that each wait for their own: seconds of every one."""

import math
import os
import random
import statistics
import threading
import time
from dataclasses import dataclass
from typing import Literal

from kernels.probes.direct_io import PAGE_BYTES, AlignedBuffer, StorageError

Direction = Literal["read", "write"]
MODES: dict[Direction, tuple[str, ...]] = {
    "read": ("direct", "buffered", "cached"),
    "write": ("direct", "buffered", "synced"),
}
"""How, by direction; `kernels.probes.storage` says what each means."""
_LEAST_OPERATIONS = 20
_OVERDUE = 8
"""A point is given up after so many boxes, however few operations have ended."""
_PRIME_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class StoragePoint:
    """What is asked: one block size in one mode.

    Attributes:
        block_bytes: in all, over `fragments` of a multiple of 4 KiB.
        queue_depth: blocks in flight.
    """

    direction: Direction
    io_mode: str
    block_bytes: int
    queue_depth: int = 1
    fragments: int = 1

    def __str__(self) -> str:
        pieces = f" in {self.fragments}" if self.fragments > 1 else ""
        return (
            f"{self.direction} {self.io_mode} {self.block_bytes // 1024} KiB{pieces}, "
            f"depth {self.queue_depth}"
        )


@dataclass(frozen=True, slots=True)
class StorageRow:
    """What was found at a point: seconds of one block, and bytes/s of all in flight together.

    One at a time, bytes/s are those of the blocks' own seconds. With several in flight they are
    by the clock, what the threads do between two blocks included.
    """

    point: StoragePoint
    operations: int
    seconds_mean: float
    seconds_median: float
    seconds_p90: float
    seconds_p99: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class BlockFiles:
    """Descriptors of a file to read from and one to write to, buffered and direct."""

    read: tuple[int, int | None]
    write: tuple[int, int | None]
    num_bytes: int

    def handle(self, point: StoragePoint) -> int:
        """Return the descriptor that a point goes through.

        Raises:
            StorageError: it is direct, and O_DIRECT does not work here.
        """
        buffered, direct = self.read if point.direction == "read" else self.write
        if point.io_mode != "direct":
            return buffered
        if direct is None:
            raise StorageError(f"{point}: O_DIRECT does not work here")
        return direct


def prime(handle: int, num_bytes: int) -> None:
    """Fill a file so that each page begins with its own number; none may be a hole."""
    chunk = bytearray(os.urandom(min(_PRIME_BYTES, num_bytes)))
    for start in range(0, num_bytes, len(chunk)):
        for page in range(0, len(chunk), PAGE_BYTES):
            chunk[page : page + 8] = _stamp(start + page)
        os.pwrite(handle, memoryview(chunk)[: num_bytes - start], start)
    os.fdatasync(handle)


def _stamp(offset: int) -> bytes:
    return (offset // PAGE_BYTES + 1).to_bytes(8, "little")


def run_point(files: BlockFiles, point: StoragePoint, box_s: float) -> StorageRow:
    """Read or write blocks for about `box_s` seconds, 20 of them at least.

    Raises:
        StorageError: a point that the files don't allow, or data that came back otherwise.
    """
    _check_point(point, files.num_bytes)
    handle = files.handle(point)
    os.fdatasync(handle)
    if point.direction == "read" and point.io_mode != "direct":
        _warm(handle, files.num_bytes) if point.io_mode == "cached" else _drop(handle)
    run = _Run(point, handle, files.num_bytes, box_s)
    took_s = run.all_threads()
    os.fdatasync(handle)
    if point.direction == "write":
        _drop(handle)
        run.check_written()
    return _row(point, [second for found in run.seconds for second in found], took_s)


def _row(point: StoragePoint, seconds: list[float], took_s: float) -> StorageRow:
    ordered = sorted(seconds)
    if point.queue_depth == 1:
        took_s = math.fsum(ordered)
    return StorageRow(
        point=point,
        operations=len(ordered),
        seconds_mean=statistics.fmean(ordered),
        seconds_median=statistics.median(ordered),
        seconds_p90=_rank(ordered, 0.90),
        seconds_p99=_rank(ordered, 0.99),
        bytes_per_s=point.block_bytes * len(ordered) / took_s,
    )


def _rank(ordered: list[float], share: float) -> float:
    """Return the value that a share of all does not exceed."""
    return ordered[min(len(ordered), math.ceil(share * len(ordered))) - 1]


class _Run:
    """Threads that read or write blocks at places dealt to them, until the box is over."""

    def __init__(self, point: StoragePoint, handle: int, file_bytes: int, box_s: float) -> None:
        self.point, self.failure = point, ""
        self.seconds: list[list[float]] = [[] for _ in range(point.queue_depth)]
        self._handle, self._box_s = handle, box_s
        self._until_s = self._given_up_s = 0.0
        self._piece = point.block_bytes // point.fragments
        places = list(range(0, file_bytes - self._piece + 1, self._piece))
        random.Random(file_bytes + self._piece).shuffle(places)  # noqa: S311
        self._dealt = [places[at :: point.queue_depth] for at in range(point.queue_depth)]
        # What was once read is in the page cache, and what was once written is dirty there: then
        # each place is used once, which also bounds what is left to write back.
        self._once = point.io_mode == "buffered"
        self._least = math.ceil(_LEAST_OPERATIONS / point.queue_depth)
        self._written: list[int] = []
        # Before the clock starts: memory that is touched for the first time is slow.
        content = os.urandom(self._piece)
        self._buffers = [AlignedBuffer(self._piece) for _ in range(point.queue_depth)]
        for buffer in self._buffers:
            view = buffer.part(0, self._piece)
            view[:] = content
            view.release()

    def all_threads(self) -> float:
        """Let every thread do its share; return the seconds that all took.

        Raises:
            StorageError: one of them failed.
        """
        started_s = time.perf_counter()
        self._until_s = started_s + self._box_s
        self._given_up_s = self._until_s + _OVERDUE * self._box_s
        workers = [threading.Thread(target=self.work, args=(at,)) for at in range(len(self._dealt))]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except BaseException:
            # Ctrl-C: nobody may use the descriptors once they are closed.
            self.failure = "stopped"
            for worker in workers:
                worker.join()
            raise
        if self.failure:
            raise StorageError(self.failure)
        return time.perf_counter() - started_s

    def work(self, at: int) -> None:
        """Do one thread's share."""
        view = self._buffers[at].part(0, self._piece)
        try:
            self._loop(at, view)
        except OSError as error:
            self.failure = f"{self.point}: {error.strerror}"
        except StorageError as error:
            self.failure = str(error)
        finally:
            view.release()
            self._buffers[at].close()

    def _loop(self, at: int, view: memoryview) -> None:
        places, took, pieces = self._dealt[at], self.seconds[at], self.point.fragments
        position = 0
        while not self.failure:
            now_s = time.perf_counter()
            enough = len(took) >= self._least
            if took and now_s >= (self._until_s if enough else self._given_up_s):
                return
            if position + pieces > len(places):
                if self._once and took:
                    return
                position = 0
            chosen = [places[(position + n) % len(places)] for n in range(pieces)]
            position += pieces
            took.append(self._block(chosen, view))

    def _block(self, places: list[int], view: memoryview) -> float:
        """Return the seconds of one block."""
        spent_s = 0.0
        writing, synced = self.point.direction == "write", self.point.io_mode == "synced"
        for number, place in enumerate(places):
            if writing:
                view[:8] = _stamp(place)
            start_s = time.perf_counter()
            if writing:
                moved = os.pwritev(self._handle, [view], place)
                if synced and number == len(places) - 1:
                    os.fdatasync(self._handle)
            else:
                moved = os.preadv(self._handle, [view], place)
            spent_s += time.perf_counter() - start_s
            if moved != len(view):
                raise StorageError(f"{self.point}: {moved} of {len(view)} bytes were moved")
            if not writing and bytes(view[:8]) != _stamp(place):
                raise StorageError(f"{self.point}: other data came back from byte {place}")
        if writing:
            self._written[:] = places
        return spent_s

    def check_written(self) -> None:
        """Read the last written block back.

        Raises:
            StorageError: it is another.
        """
        for place in self._written:
            buffer = AlignedBuffer(PAGE_BYTES)
            view = buffer.part(0, PAGE_BYTES)
            try:
                os.preadv(self._handle, [view], place)
                if bytes(view[:8]) != _stamp(place):
                    raise StorageError(f"{self.point}: byte {place} was not written")
            finally:
                view.release()
                buffer.close()


def _warm(handle: int, num_bytes: int) -> None:
    """Have the page cache hold the whole file."""
    for start in range(0, num_bytes, _PRIME_BYTES):
        os.pread(handle, _PRIME_BYTES, start)


def _drop(handle: int) -> None:
    """Have the page cache forget the file; what is dirty would stay, so it is written first."""
    os.fdatasync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def _check_point(point: StoragePoint, file_bytes: int) -> None:
    if point.io_mode not in MODES[point.direction]:
        raise StorageError(f"{point}: unknown mode; known are {', '.join(MODES[point.direction])}")
    piece, over = divmod(point.block_bytes, point.fragments)
    if over or piece % PAGE_BYTES or not 0 < point.block_bytes * point.queue_depth <= file_bytes:
        raise StorageError(f"{point}: needs fragments of whole pages, and a larger file")
