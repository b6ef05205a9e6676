"""Collects the steps of a run; a run of decode steps is a few numbers until it is asked for."""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from twin.engine.result import Floats, Ints, StepTable
from twin.engine.step_table import LaterStepTable


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


class StepLog(Protocol):
    """Steps that somebody else recorded.

    Attributes:
        kept: how many it holds.
        taken: how many there were.
    """

    kept: int
    taken: int

    def columns(self) -> dict[str, Any]:
        """Return the steps, in any order, by column of `StepTable`."""
        ...


class StepRecorder:
    """One row a step that ran tokens, or every so manieth of an engine core.

    Args:
        stride: one is kept of so many, the first among them; 0: none.
    """

    def __init__(self, stride: int = 1) -> None:
        self._stride, self._seen = stride, Counter[int]()
        self._keeps_last = True
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
        self._busy_row, self._busy_s = array("q"), array("d")
        self._attached: list[StepLog] = []
        self._runs: list[tuple[tuple[Floats, Floats, Floats], tuple[RunColumn, ...]]] = []

    def __len__(self) -> int:
        own = len(self._start_s) + sum(times[0].size for times, _ in self._runs)
        return own + sum(log.kept for log in self._attached)

    def record(
        self, scheduled_s: float, start_s: float, end_s: float, counts: tuple[int, ...]
    ) -> None:
        """Add a step; `counts` in the order of the integer columns."""
        if self._stride != 1 and not self._keeps(counts[0]):
            return
        self._scheduled_s.append(scheduled_s)
        self._start_s.append(start_s)
        self._end_s.append(end_s)
        for append, value in zip(self._append, counts, strict=True):
            append(value)

    def record_run(
        self, times_s: tuple[Floats, Floats, Floats], counts: tuple[RunColumn, ...]
    ) -> None:
        """Add steps: arrays of (scheduled, start, end), and columns that are equal or arrays."""
        if self._stride == 1:
            self._runs.append((times_s, counts))
            return
        replica, size = counts[0], times_s[0].size
        if not isinstance(replica, int):
            raise TypeError("a run of steps is of one engine core")
        before = self._seen[replica]
        self._seen[replica] += size
        if self._stride:
            kept = np.arange(-before % self._stride, size, self._stride)
            if kept.size:
                first, second, third = (times[kept] for times in times_s)
                columns = tuple(_column(value, size)[kept] for value in counts)
                self._runs.append(((first, second, third), columns))

    def _keeps(self, replica: int) -> bool:
        """Count a step; say whether it is kept."""
        number = self._seen[replica]
        self._seen[replica] = number + 1
        self._keeps_last = bool(self._stride) and number % self._stride == 0
        return self._keeps_last

    def keep_busy(self, busy_s: float) -> None:
        """Say of the step just added how long it keeps a GPU busy, if not from start to end."""
        if self._keeps_last:
            self._busy_row.append(len(self._start_s) - 1)
            self._busy_s.append(busy_s)

    def attach(self, log: StepLog) -> None:
        """Add steps that somebody else recorded."""
        self._attached.append(log)

    @property
    def total(self) -> int:
        """Steps there were, kept or not."""
        own = len(self) - sum(log.kept for log in self._attached)
        taken = own if self._stride == 1 else sum(self._seen.values())
        return taken + sum(log.taken for log in self._attached)

    def table(self) -> StepTable:
        """Return the arrays by time of scheduling, then replica, made when one is asked for."""
        return LaterStepTable(len(self), self._table)

    def _table(self) -> StepTable:
        attached = [log.columns() for log in self._attached]
        scheduled, start_s, end_s = (
            np.concatenate([np.array(column, dtype=np.float64), *runs, *_of(attached, name)])
            for name, column, runs in zip(
                ("scheduled_s", "start_s", "end_s"),
                (self._scheduled_s, self._start_s, self._end_s),
                self._run_times(),
                strict=True,
            )
        )
        columns = {
            name: np.concatenate(
                [np.array(column, dtype=np.int64), *self._run_counts(place), *_of(attached, name)]
            )
            for place, (name, column) in enumerate(self._ints.items())
        }
        busy_s = end_s - start_s
        busy_s[np.array(self._busy_row, dtype=np.int64)] = self._busy_s  # those come first
        order = np.lexsort((columns["replica"], scheduled))
        return StepTable(
            scheduled_s=scheduled[order],
            start_s=start_s[order],
            end_s=end_s[order],
            busy_s=busy_s[order],
            **{name: column[order] for name, column in columns.items()},
        )

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


def _of(attached: list[dict[str, Any]], name: str) -> list[Any]:
    return [columns[name] for columns in attached]


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
