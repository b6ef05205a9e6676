"""Collects what happens in a run into flat arrays; derives nothing."""

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from twin.engine.result import (
    FAILED,
    FINISHED,
    REJECTED,
    UNFINISHED,
    Floats,
    Ints,
    RequestTable,
    StepTable,
)
from twin.engine.step_table import LaterStepTable
from twin.request import Request, RequestState


class RequestRecorder:
    """One slot a request, by `Request.index`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.scheduled_s: list[float] = []
        self.first_token_s: list[float] = []
        self.last_token_s: list[float] = []
        self.finish_s: list[float] = []
        self.output_tokens: list[int] = []
        self.states: list[RequestState | None] = []
        self.replica: list[int] = []
        self.outcome: list[int] = []
        self.requeues: list[int] = []
        self._gaps: dict[int, GapLog] = {}

    @property
    def itl_s(self) -> Floats:
        """Gaps between tokens, engine core by engine core, each in order of delivery."""
        logs = [self._gaps[core].gaps() for core in sorted(self._gaps)]
        return np.concatenate(logs) if logs else np.empty(0)

    def gaps_of(self, core: int) -> "GapLog":
        """Return the log of an engine core."""
        log = self._gaps.get(core)
        if log is None:
            log = self._gaps[core] = GapLog()
        return log

    def arrive(self, request: Request) -> None:
        """Open a slot; indices must come dense, but may come out of order of time."""
        for column, blank in self._columns():
            column.extend([blank] * (request.index + 1 - len(column)))
        self.requests.extend([request] * (request.index + 1 - len(self.requests)))
        self.requests[request.index] = request

    def arrive_all(self, requests: Sequence[Request]) -> None:
        """Open slots for many."""
        start = len(self.requests)
        if [request.index for request in requests] != list(range(start, start + len(requests))):
            for request in requests:
                self.arrive(request)
            return
        for column, blank in self._columns():
            column.extend([blank] * len(requests))
        self.requests.extend(requests)

    def _columns(self) -> Iterable[tuple[list, object]]:  # type: ignore[type-arg]
        nan = math.nan
        return (
            (self.scheduled_s, nan),
            (self.first_token_s, nan),
            (self.last_token_s, nan),
            (self.finish_s, nan),
            (self.output_tokens, 0),
            (self.states, None),
            (self.replica, -1),
            (self.outcome, UNFINISHED),
            (self.requeues, 0),
        )

    def submit(self, state: RequestState, replica: int) -> None:
        """The request joins a replica's queue."""
        index = state.request.index
        self.states[index] = state
        self.replica[index] = replica

    def reject(self, request: Request, replica: int, at_s: float) -> None:
        """The server refuses the request."""
        self.outcome[request.index] = REJECTED
        self.replica[request.index] = replica
        self.finish_s[request.index] = at_s

    def requeue(self, request: Request) -> None:
        """Its replica is lost: it begins anew elsewhere, as if nothing had been done for it."""
        index = request.index
        self.requeues[index] += 1
        for column in (self.scheduled_s, self.first_token_s, self.last_token_s):
            column[index] = math.nan
        self.output_tokens[index], self.states[index], self.replica[index] = 0, None, -1

    def fail(self, request: Request, at_s: float) -> None:
        """The request ends without the rest of its answer."""
        self.outcome[request.index] = FAILED
        self.finish_s[request.index] = at_s

    def admit(self, states: Iterable[RequestState], at_s: float) -> None:
        """First scheduling; later ones (after a preemption) keep the first time."""
        scheduled_s = self.scheduled_s
        for state in states:
            index = state.request.index
            if math.isnan(scheduled_s[index]):
                scheduled_s[index] = at_s

    def deliver(self, states: Sequence[RequestState], at_s: float) -> None:
        """Each state, all of one engine core, gets one token."""
        if not states:
            return
        first, last, count = self.first_token_s, self.last_token_s, self.output_tokens
        gap = self.gaps_of(self.replica[states[0].request.index]).add
        for state in states:
            index = state.request.index
            if count[index]:
                gap(at_s - last[index])
            else:
                first[index] = at_s
            last[index] = at_s
            count[index] += 1

    def deliver_run(self, states: Sequence[RequestState], at_s: Floats) -> None:
        """Each state, all of one engine core, gets a token at each of these times."""
        steps, last_s, count = len(at_s), self.last_token_s, self.output_tokens
        log, first_s, end_s = self.gaps_of(self.replica[states[0].request.index]), *_ends(at_s)
        for state in states:
            index = state.request.index
            if count[index]:
                log.add(first_s - last_s[index])
            else:
                self.first_token_s[index] = first_s
            last_s[index] = end_s
            count[index] += steps
        log.add_run(at_s, len(states))

    def finish(self, states: Iterable[RequestState], at_s: float) -> None:
        """The states end; their last token came now."""
        for state in states:
            self.finish_s[state.request.index] = at_s
            self.outcome[state.request.index] = FINISHED

    def table(self) -> RequestTable:
        """Return the arrays."""
        requests = self.requests
        states = self.states
        return RequestTable(
            arrival_s=_floats([r.arrival_s for r in requests]),
            scheduled_s=_floats(self.scheduled_s),
            first_token_s=_floats(self.first_token_s),
            finish_s=_floats(self.finish_s),
            prompt_tokens=_ints([r.prompt_tokens for r in requests]),
            output_tokens=_ints(self.output_tokens),
            cached_tokens=_ints([max(0, s.cached_tokens) if s else 0 for s in states]),
            preemptions=_ints([s.preemptions if s else 0 for s in states]),
            requeues=_ints(self.requeues),
            replica=_ints(self.replica),
            outcome=_ints(self.outcome),
            session=_ints([r.session for r in requests]),
            turn=_ints([r.turn for r in requests]),
            priority=_ints([r.priority for r in requests]),
            name=tuple(r.name or f"request-{r.index}" for r in requests),
        )


class GapLog:
    """Gaps between tokens as (gap, how often in a row): a step gives its whole batch one gap."""

    __slots__ = ("_all", "_counts", "_runs", "_values")

    def __init__(self) -> None:
        self._all: Floats | None = None
        self._values, self._counts = array("d"), array("q")
        self._runs: list[tuple[int, Floats, int]] = []

    def add(self, gap_s: float) -> None:
        """Add one gap."""
        if self._values and self._values[-1] == gap_s and self._may_grow():
            self._counts[-1] += 1
        else:
            self.add_many(gap_s, 1)

    def add_many(self, gap_s: float, times: int) -> None:
        """Add one gap so many times."""
        self._values.append(gap_s)
        self._counts.append(times)

    def add_run(self, at_s: Floats, times: int) -> None:
        """Add the gaps between these instants, each so many times."""
        self._runs.append((len(self._values), at_s, times))

    def add_all(self, gaps_s: Floats) -> None:
        """Add gaps that somebody else noted, all there are."""
        self._all = gaps_s

    def gaps(self) -> Floats:
        """Return all of them, one after another."""
        if self._all is not None:
            return self._all
        values = np.array(self._values, dtype=np.float64)
        counts = np.array(self._counts, dtype=np.int64)
        parts, done = [], 0
        for place, at_s, times in self._runs:
            parts.append(np.repeat(values[done:place], counts[done:place]))
            parts.append(np.repeat(np.diff(at_s), times))
            done = place
        parts.append(np.repeat(values[done:], counts[done:]))
        return np.concatenate(parts)

    def _may_grow(self) -> bool:
        """Whether nothing came after the last single gap."""
        return not self._runs or self._runs[-1][0] < len(self._values)


@dataclass(frozen=True, slots=True)
class BlockRun:
    """KV blocks in use over a run of steps, as a rule that a table writes out.

    Attributes:
        used_blocks: before the run.
        taken: blocks that a step takes, by the number of its call modulo their length.
        call: the first call.
    """

    used_blocks: int
    taken: tuple[int, ...]
    call: int


RunColumn = int | Ints | BlockRun


class StepRecorder:
    """One row a step that ran tokens."""

    def __init__(self) -> None:
        self._ints = {
            name: array("q")
            for name in (
                "replica",
                "prefill_tokens",
                "decode_tokens",
                "running",
                "waiting",
                "used_blocks",
                "preempted",
                "bound",
            )
        }
        self._append = tuple(column.append for column in self._ints.values())
        self._start_s, self._end_s, self._scheduled_s = array("d"), array("d"), array("d")
        self._busy_s = array("d")
        self._attached: list[dict[str, Any]] = []
        self._runs: list[tuple[tuple[Floats, Floats, Floats], tuple[RunColumn, ...]]] = []

    def __len__(self) -> int:
        own = len(self._start_s) + sum(times[0].size for times, _ in self._runs)
        return own + sum(columns["start_s"].size for columns in self._attached)

    def record(
        self, scheduled_s: float, start_s: float, end_s: float, counts: tuple[int, ...]
    ) -> None:
        """Add a step; `counts` in the order of the integer columns."""
        self._scheduled_s.append(scheduled_s)
        self._start_s.append(start_s)
        self._end_s.append(end_s)
        for append, value in zip(self._append, counts, strict=True):
            append(value)

    def record_run(
        self, times_s: tuple[Floats, Floats, Floats], counts: tuple[RunColumn, ...]
    ) -> None:
        """Add steps: arrays of (scheduled, start, end), and columns that are equal or arrays."""
        self._runs.append((times_s, counts))

    def keep_busy(self, busy_s: float) -> None:
        """Say of the step just added how long it keeps a GPU busy, if not from start to end.

        It must be said of every step of a run or of none.
        """
        self._busy_s.append(busy_s)

    def attach(self, columns: dict[str, Any]) -> None:
        """Add steps that somebody else recorded, by column."""
        self._attached.append(columns)

    def table(self) -> StepTable:
        """Return the arrays by time of scheduling, then replica, made when one is asked for."""
        return LaterStepTable(len(self), self._table)

    def _table(self) -> StepTable:
        scheduled, start_s, end_s = (
            np.concatenate([np.array(column, dtype=np.float64), *runs, *self._of(name)])
            for name, column, runs in zip(
                ("scheduled_s", "start_s", "end_s"),
                (self._scheduled_s, self._start_s, self._end_s),
                self._run_times(),
                strict=True,
            )
        )
        columns = {
            name: np.concatenate(
                [np.array(column, dtype=np.int64), *self._run_counts(place), *self._of(name)]
            )
            for place, (name, column) in enumerate(self._ints.items())
        }
        order = np.lexsort((columns["replica"], scheduled))
        return StepTable(
            scheduled_s=scheduled[order],
            start_s=start_s[order],
            end_s=end_s[order],
            busy_s=np.array(self._busy_s, dtype=np.float64)[order if self._busy_s else []],
            **{name: column[order] for name, column in columns.items()},
        )

    def _of(self, name: str) -> list[Any]:
        return [columns[name] for columns in self._attached]

    def _run_times(self) -> list[list[Floats]]:
        return [[times[which] for times, _ in self._runs] for which in range(3)]

    def _run_counts(self, place: int) -> list[Ints]:
        """Return a column of the runs, written out."""
        values = [counts[place] for _, counts in self._runs]
        sizes = [times[0].size for times, _ in self._runs]
        numbers = [value for value in values if isinstance(value, int)]
        if len(numbers) == len(values):
            return [np.repeat(np.array(numbers, dtype=np.int64), sizes)]
        rules = [value for value in values if isinstance(value, BlockRun)]
        if len(rules) == len(values) and len({len(rule.taken) for rule in rules}) == 1:
            return [_written_out(rules, np.array(sizes, dtype=np.int64))]
        return [_column(value, size) for value, size in zip(values, sizes, strict=True)]


def _column(value: RunColumn, size: int) -> Ints:
    if isinstance(value, BlockRun):
        return _written_out([value], np.array([size], dtype=np.int64))
    return np.broadcast_to(np.asarray(value, dtype=np.int64), size)


def _written_out(rules: Sequence[BlockRun], sizes: Ints) -> Ints:
    """Return the blocks in use after each step of some runs, one run after another."""
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    run = np.repeat(np.arange(sizes.size), sizes)
    calls = np.array([rule.call for rule in rules], dtype=np.int64)
    taken = np.array([rule.taken for rule in rules], dtype=np.int64)
    call = calls[run] + np.arange(run.size) - starts[run]
    sums = np.cumsum(taken[run, call % taken.shape[1]])
    before = np.concatenate(([0], sums))[starts]
    used = np.array([rule.used_blocks for rule in rules], dtype=np.int64)
    found: Ints = used[run] + sums - before[run]
    return found


def _ends(at_s: Floats) -> tuple[float, float]:
    return float(at_s[0]), float(at_s[-1])


def _floats(values: list[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)
