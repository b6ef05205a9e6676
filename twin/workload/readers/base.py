"""What a trace reader is, and how its records become a `Trace`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from twin.errors import InputError
from twin.workload.limits import MAX_SECONDS
from twin.workload.readers.fields import place
from twin.workload.segments import SegmentTable
from twin.workload.trace import Finish, Floats, Trace


class Reader(Protocol):
    """Reads one trace format.

    Attributes:
        description: one line for lists of formats.
        finish: how answers in such files ended.
    """

    description: str
    finish: Finish

    def recognises(self, head: str) -> bool:
        """Whether a file that starts with `head` (at most 64 KiB) is of this format."""
        ...

    def read(self, path: Path) -> "Records":
        """Read the whole file.

        Raises:
            InputError: naming file, row and remedy.
        """
        ...


@dataclass(slots=True)
class Records:
    """What a reader found, in the order of the file; one entry a request in each list.

    `times_s` may count from anywhere. `in_order` says that disorder in the file is an error;
    readers of files that are not kept by time clear it. `timed`: the file has times at all (else
    they are all 0). None: the file has no such column.
    """

    times_s: list[float] | Floats = field(default_factory=list)
    prompt_tokens: list[int] = field(default_factory=list)
    output_tokens: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    names: list[str] | None = None
    priority: list[int] | None = None
    tenant: list[str] | None = None
    session: list[int] | None = None
    turn: list[int] | None = None
    segments: SegmentTable | None = None
    in_order: bool = True
    timed: bool = True
    notes: list[str] = field(default_factory=list)

    def to_trace(self, path: Path, format_name: str, finish: Finish, *, sort: bool) -> Trace:
        """Return the trace, times counted from the first request.

        Raises:
            InputError: no request, times that run back (unless `sort`), or an absurd span.
        """
        if not self.rows:
            raise InputError("holds no request", where=str(path), remedy="a trace needs one")
        times_s = np.array(self.times_s, dtype=np.float64)
        if self.in_order and not sort:
            self._check_order(times_s, path)
        order = np.argsort(times_s, kind="stable").astype(np.int64)
        times_s = times_s - times_s[order[0]]
        if times_s[order[-1]] > MAX_SECONDS:
            raise InputError(
                f"the times span {times_s[order[-1]]:.3g} s",
                where=place(path, self.rows[order[-1]]),
                remedy=f"at most {MAX_SECONDS:.0e} s; check the unit",
            )
        return Trace(
            path=str(path),
            format=format_name,
            finish=finish,
            arrival_s=times_s,
            prompt_tokens=np.array(self.prompt_tokens, dtype=np.int64),
            output_tokens=np.array(self.output_tokens, dtype=np.int64),
            rows=np.array(self.rows, dtype=np.int64),
            names=None if self.names is None else tuple(self.names),
            priority=None if self.priority is None else np.array(self.priority, dtype=np.int64),
            tenant=None if self.tenant is None else tuple(self.tenant),
            session=None if self.session is None else np.array(self.session, dtype=np.int64),
            turn=None if self.turn is None else np.array(self.turn, dtype=np.int64),
            segments=self.segments,
            timed=self.timed,
            notes=tuple(self.notes),
        ).take(order)

    def _check_order(self, times_s: Floats, path: Path) -> None:
        back = np.flatnonzero(np.diff(times_s) < 0)
        if back.size:
            first = int(back[0]) + 1
            gap_s = times_s[first - 1] - times_s[first]
            raise InputError(
                f"arrives {gap_s:.6g} s before the row above",
                where=place(path, self.rows[first]),
                remedy="order the rows by time or set sort: true",
            )
