"""`Trace`: recorded requests as arrays, whatever file they came from."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from twin.errors import InputError
from twin.workload.segments import SegmentTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Finish = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests of one file, in order of arrival; every array has shape (n,).

    Attributes:
        path: the file, as given.
        format: name of the reader that read it.
        finish: how answers end in files of this kind: by a stop token nobody foresees, or by
            the limit the client set.
        arrival_s: seconds since the first request (since its start once a window is cut).
        prompt_tokens, output_tokens: lengths, at least 1.
        rows: where each request stands in the file: line number, or position in a JSON list.
        names: the client's ids; None: the file has none.
        priority, tenant: None: the file has none.
        session, turn: conversation and turn; None: the file has no conversations.
        segments: prefix identity; None: unknown, nothing is shared.
        timed: whether the file has times; without them `arrival_s` is 0 throughout.
        notes: what the reader left out or had to assume, one sentence each.
    """

    path: str
    format: str
    finish: Finish
    arrival_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    rows: Ints
    names: tuple[str, ...] | None = None
    priority: Ints | None = None
    tenant: tuple[str, ...] | None = None
    session: Ints | None = None
    turn: Ints | None = None
    segments: SegmentTable | None = None
    timed: bool = True
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.arrival_s.size)

    def take(self, rows: Ints) -> "Trace":
        """Return the requests at these positions, in that order."""

        def texts(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return None if values is None else tuple(values[i] for i in rows.tolist())

        def ints(values: Ints | None) -> Ints | None:
            return None if values is None else values[rows]

        return replace(
            self,
            arrival_s=self.arrival_s[rows],
            prompt_tokens=self.prompt_tokens[rows],
            output_tokens=self.output_tokens[rows],
            rows=self.rows[rows],
            names=texts(self.names),
            tenant=texts(self.tenant),
            priority=ints(self.priority),
            session=ints(self.session),
            turn=ints(self.turn),
            segments=None if self.segments is None else self.segments.take(rows),
        )

    def window(self, start_s: float, end_s: float) -> "Trace":
        """Return the requests that arrive in [start_s, end_s), times counted from `start_s`.

        Raises:
            InputError: not one request arrives then.
        """
        inside = (self.arrival_s >= start_s) & (self.arrival_s < end_s)
        if not inside.any():
            raise InputError(
                f"no request arrives between {start_s:g} s and {end_s:g} s",
                where=self.path,
                remedy=f"the trace lasts from 0 to {self.arrival_s[-1]:.6g} s",
            )
        cut = self.take(np.flatnonzero(inside))
        return replace(cut, arrival_s=cut.arrival_s - start_s)
