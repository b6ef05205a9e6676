"""`CompiledFleet`: the arrays of some replicas of one kind, and what Python does for them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hwmodels.host import HostCosts
from twin.engine.compiled import layout, loop
from twin.engine.compiled.layout import COUNTERS, ENDED, TABLE, State
from twin.engine.compiled.memory import table_of
from twin.engine.compiled.prices import PriceBook
from twin.errors import ServetwinError
from twin.llm.step_time import StepTimer
from twin.request import Content, RequestState, SegmentContent
from twin.scheduling.limits import SchedulerLimits

_ROWS = 1024
_ID_LIMIT = 2**38  # a segment id and a block index share 63 bits


class CompiledFleet:
    """Replicas of one kind, from 0 on, behind one set of arrays.

    Args:
        replicas: how many.
        limits: the policy of each.
        timer: times their steps.
        host: host costs around them.

    Attributes:
        state, book: the arrays.
    """

    def __init__(
        self, replicas: int, limits: SchedulerLimits, timer: StepTimer, host: HostCosts
    ) -> None:
        self.limits, self.replicas = limits, replicas
        self.book = PriceBook(timer, limits.max_num_seqs, limits.max_num_batched_tokens)
        self.state = _state(replicas, limits, _policy(limits, timer, host))
        self._segments_used = 0
        self._pending: list[tuple[int, int, float]] = []

    def expect(self, requests: int) -> None:
        """Make room for requests with indices below a number."""
        have = self.state.request.size
        if requests > have:
            self._extend("request", max(requests, 2 * have) - have)
            _blank(self.state.request[have:])
        self._reserve("ended", requests + 4 * self.limits.max_num_seqs)

    def take(self, state: RequestState) -> int:
        """Write a request's row; return its index."""
        request, limits = state.request, self.limits
        index = request.index
        self.expect(index + 1)
        row = self.state.request[index]
        row["stamp_s"] = state.arrival_s
        row["prompt"], row["max_tokens"] = request.prompt_tokens, request.max_tokens
        row["limit"], row["priority"] = limits.output_limit(request), request.priority
        if request.content is not None and limits.enable_prefix_caching:
            self._take_content(row, request.content)
        return index

    def submit(self, replica: int, row: int, at_s: float) -> None:
        """Hand a request to a replica when it next advances; calls come in order of time."""
        self._pending.append((replica, row, at_s))

    def flush(self) -> None:
        """Hand over what was submitted, advancing each replica up to then."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        columns = list(zip(*pending, strict=True))
        replicas = np.array(columns[0], dtype=np.int64)
        rows, at_s = np.array(columns[1], dtype=np.int64), np.array(columns[2])
        done, why = 0, 0
        while why >= 0:
            done, why, replica = loop.feed(self._table(), rows, replicas, at_s, done)
            self._help(why, replica)

    def advance(self, until_s: float) -> None:
        """Advance all replicas to an instant, what happens at it excluded."""
        self.flush()
        why = 0
        while why >= 0:
            why, replica = loop.advance_all(self._table(), until_s)
            self._help(why, replica)

    def _help(self, why: int, replica: int) -> None:
        if why == loop.PRICE_MISSING:
            self.book.fill(self.state)
        elif why == loop.FULL:
            self._grow()
        elif why == loop.STUCK:
            raise ServetwinError(
                f"replica {replica} cannot schedule any of its requests; "
                "this is a fault of the simulator, please report it with the scenario"
            )

    def _table(self) -> Any:
        """Return the table that compiled code reads (`twin.engine.compiled.memory`)."""
        return table_of(self.state, self.book.prices)

    def _take_content(self, row: Any, content: Content) -> None:
        segments = _segments(content)
        count, start = len(segments.ids), self._segments_used
        self._reserve("segment_id", start + count)
        self._reserve("segment_end", start + count)
        self.state.segment_id[start : start + count] = segments.ids
        self.state.segment_end[start : start + count] = segments.ends
        row["segments_at"], row["segments"] = start, count
        self._segments_used += count

    def _grow(self) -> None:
        """Make room wherever there may be too little."""
        state, seqs = self.state, self.limits.max_num_seqs
        for name, place, margin in (
            ("step", layout.STEPS, 1), ("run", layout.RUNS, 1),
            ("taken", layout.TAKEN, self.limits.block_size), ("gap", layout.GAPS, seqs + 1),
            ("ended", ENDED, 2 * seqs),
        ):  # fmt: skip
            self._reserve(name, int(state.counter[place]) + margin)
        self._compact()

    def _compact(self) -> None:
        """Move the block tables of live requests together; room for as much again and more."""
        state, counter = self.state, self.state.counter
        live = np.flatnonzero((state.request["room"] > 0) & (state.request["status"] <= 2))
        order = live[np.argsort(state.request["place"][live], kind="stable")]
        rooms, places = state.request["room"][order], state.request["place"][order]
        ends = np.cumsum(rooms)
        used = int(ends[-1]) if ends.size else 0
        source = np.repeat(places - (ends - rooms), rooms) + np.arange(used)
        longest = -(-self.limits.max_model_len // self.limits.block_size) + 3
        size = max(state.table_block.size, 2 * used + longest)
        tables = {}
        for name in ("table_block", "table_key"):
            table = getattr(state, name)
            fresh = np.zeros(size if table.size else 0, dtype=table.dtype)
            fresh[:used] = table[source]
            tables[name] = fresh
        state.request["place"][order] = ends - rooms
        self.state = state._replace(**tables)
        counter[TABLE] = used

    def _reserve(self, name: str, size: int) -> None:
        have = getattr(self.state, name).size
        if size > have:
            self._extend(name, max(size, 2 * have) - have)

    def _extend(self, name: str, more: int) -> None:
        array = getattr(self.state, name)
        grown = np.concatenate([array, np.zeros(more, dtype=array.dtype)])
        self.state = self.state._replace(**{name: grown})


def _segments(content: Content) -> SegmentContent:
    """Return content as segments whose ids fit."""
    if isinstance(content, SegmentContent) and max(map(abs, content.ids)) < _ID_LIMIT:
        return content
    raise ServetwinError("content of a kind that the compiled engine does not know")


def _policy(limits: SchedulerLimits, timer: StepTimer, host: HostCosts) -> Any:
    row = np.zeros(1, layout.POLICY)
    values: dict[str, float] = {
        "max_num_seqs": limits.max_num_seqs,
        "max_num_batched_tokens": limits.max_num_batched_tokens,
        "max_model_len": limits.max_model_len,
        "block_size": limits.block_size,
        "caching": limits.enable_prefix_caching,
        "chunked": limits.enable_chunked_prefill,
        "threshold": limits.long_prefill_token_threshold,
        "priority": limits.scheduling_policy == "priority",
        "reserve_full_isl": limits.scheduler_reserve_full_isl,
        "watermark_blocks": limits.watermark_blocks,
        "asynchronous": limits.async_scheduling,
        "usable_blocks": limits.num_gpu_blocks - 1,
        "schedule_s": host.schedule_s,
        "schedule_per_seq_s": host.schedule_per_seq_s,
        "update_s": host.update_s,
        "update_per_seq_s": host.update_per_seq_s,
        "wake_s": host.wake_s,
        "extra_s": timer.extra_s,
        "gap_s": timer.gap_s,
        "gap_per_seq_s": timer.gap_per_seq_s,
        "tail": timer.tail,
    }
    for name, value in values.items():
        row[name] = value
    return row


def _state(replicas: int, limits: SchedulerLimits, policy: Any) -> State:
    seqs, blocks, size = limits.max_num_seqs, limits.num_gpu_blocks, limits.block_size
    places = 1 << (2 * blocks - 1).bit_length() if limits.enable_prefix_caching else 1
    state = State(
        policy=policy,
        replica=np.zeros(replicas, layout.REPLICA),
        request=np.zeros(_ROWS, layout.REQUEST),
        block=np.zeros((replicas, blocks), layout.BLOCK),
        hash_key=np.zeros((replicas, places), dtype=np.int64),
        hash_block=np.zeros((replicas, places), dtype=np.int32),
        running=np.zeros((replicas, seqs + 1), dtype=np.int32),
        plan=np.zeros((replicas, 2, seqs + 1), layout.ENTRY),
        flight=np.zeros((replicas, 2), layout.FLIGHT),
        by_source=np.zeros((replicas, 4)),
        table_block=np.zeros(_ROWS, dtype=np.int32),
        table_key=np.zeros(_ROWS, dtype=np.int64),
        segment_id=np.zeros(_ROWS, dtype=np.int64),
        segment_end=np.zeros(_ROWS, dtype=np.int64),
        step=np.zeros(_ROWS, layout.STEP),
        run=np.zeros(_ROWS, layout.RUN),
        taken=np.zeros(16 * _ROWS, dtype=np.int32),
        gap=np.zeros(16 * _ROWS, layout.GAP),
        ended=np.zeros(_ROWS, dtype=np.int32),
        counter=np.zeros(COUNTERS, dtype=np.int64),
        scratch=np.zeros(seqs + 1, dtype=np.int32),
        split=np.zeros(9),
        bucket=np.zeros((size, 2), dtype=np.int32),
        event=np.zeros((2 * seqs + 2, 2), dtype=np.int64),
    )
    _blank(state.request)
    for name in ("first", "last", "inbox_first", "inbox_last"):
        state.replica[name] = -1
    state.replica["free_blocks"] = limits.num_gpu_blocks - 1
    numbers = np.arange(blocks)
    state.block["after"] = (numbers + 1) % blocks
    state.block["before"] = (numbers - 1) % blocks
    return state


def _blank(rows: Any) -> None:
    """Mark rows as requests that have not come."""
    for name in ("scheduled_s", "first_token_s", "last_token_s", "finish_s"):
        rows[name] = math.nan
    rows["cached_tokens"] = -1
    rows["status"] = layout.ABSENT
    rows["replica"] = rows["before"] = rows["after"] = -1


def step_rows(fleet: CompiledFleet) -> Any:
    """Return every step of a fleet, in no particular order, of dtype `layout.STEP`."""
    from twin.engine.compiled import expand

    state = fleet.state
    runs = state.run["steps"][: state.counter[layout.RUNS]]
    out = np.zeros(int(state.counter[layout.STEPS] + runs.sum()), layout.STEP)
    room = np.zeros((int(runs.max(initial=1)), 5))
    expand.step_rows(table_of(state, fleet.book.prices), out, room)
    return out


def gaps(fleet: CompiledFleet) -> Sequence[Any]:
    """Return the gaps between tokens of each replica, in order of delivery."""
    from twin.engine.compiled import expand

    state = fleet.state
    counts = np.zeros(fleet.replicas, dtype=np.int64)
    table = table_of(state, fleet.book.prices)
    expand.gap_counts(table, counts)
    ends = np.cumsum(counts)
    out = np.zeros(int(ends[-1]))
    runs = state.run["steps"][: state.counter[layout.RUNS]]
    room = np.zeros((int(runs.max(initial=1)), 5))
    expand.write_gaps(table, ends - counts, out, room)
    return np.split(out, ends[:-1])
