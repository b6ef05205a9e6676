"""`CompiledFleet`: the arrays of some replicas of one kind, and what Python does for them."""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hwmodels.host import HostCosts
from twin.engine.compiled import layout, loop, outside, written
from twin.engine.compiled.layout import COUNTERS, ENDED, TABLE, State
from twin.engine.compiled.memory import table_of
from twin.engine.compiled.prices import PriceBook
from twin.engine.recorder import RequestRecorder
from twin.engine.result import FINISHED
from twin.engine.step_recorder import StepRecorder
from twin.errors import ServetwinError
from twin.llm.step_time import StepTimer
from twin.request import Content, Request, RequestState, SegmentContent, Status
from twin.scheduling.limits import SchedulerLimits

if TYPE_CHECKING:
    from twin.engine.compiled.replica import CompiledReplica

_ROWS, _BLOCKS = 1024, 65536
_BY_REPLICA = (
    "replica", "block", "hash", "running", "plan", "flight", "by_source",
)  # fmt: skip
_TOLD = tuple(
    (layout.REQUEST.names or ()).index(name)
    for name in ("delivered", "cached_tokens", "preemptions")
)
_ID_LIMIT = 2**38  # a segment id and a block index share 63 bits
_LARGE = 2**62
_FIRST_KNOWN = -(2**62)  # numbers of other keys: no segment's and no request's own


class CompiledFleet:
    """Replicas of one kind behind one set of arrays.

    Args:
        limits: the policy of each.
        timer: times their steps.
        host: host costs around them.
        stride: of steps and gaps one is kept of so many; 0: none.

    Attributes:
        state, book: the arrays.
        members: the replicas, in the order of their rows.
        records: where they write; None: none has started.
        states: the requests that were taken, by index.
    """

    def __init__(
        self, limits: SchedulerLimits, timer: StepTimer, host: HostCosts, stride: int = 1
    ) -> None:
        self.limits = limits
        self.book = PriceBook(timer, _most_running(limits), _most_tokens(limits))
        self.state = _state(limits, _policy(limits, timer, host))
        self.state.policy["stride"] = stride
        self.members: list[CompiledReplica] = []
        self.records: tuple[RequestRecorder, StepRecorder] | None = None
        self._settled = False
        self._stands_at_s = -math.inf
        self.states: dict[int, RequestState] = {}
        self._segments_used = 0
        self._known_keys: dict[int, int] = {}
        self._pending: list[tuple[int, RequestState, float]] = []
        self._longest = -(-limits.max_model_len // limits.block_size) + 3
        self._table: Any = None

    def add(self, member: "CompiledReplica") -> int:
        """Make room for one more replica; return its row."""
        row = len(self.members)
        have = self.state.replica.size
        if row == have:
            self._replace({name: _doubled(self.state, name) for name in _BY_REPLICA})
        self.members.append(member)
        outside.reset(self.table(), row)
        return row

    def table(self) -> Any:
        """Return the table that compiled code reads (`twin.engine.compiled.memory`)."""
        if self._table is None or self.book.moved:
            self._table = table_of(self.state, self.book.prices)
            self.book.moved = False
        return self._table

    def take(self, state: RequestState) -> int:
        """Write a request's row; return its index."""
        index = state.request.index
        self._expect(index + 1)
        old, room = self.state.request, self.state.request[index]["room"]
        place = old[index]["place"]
        old[index] = self._row(state)
        if room:
            old[index]["place"], old[index]["room"] = place, room
        return index

    def put_off(self, replica: int, state: RequestState, at_s: float) -> None:
        """Hand a request to a replica when it next advances; calls come in order of time."""
        if at_s == self._stands_at_s and not self._pending:
            self.submit(replica, self.take(state), at_s)
        else:
            self._pending.append((replica, state, at_s))

    def submit(self, replica: int, row: int, at_s: float) -> None:
        """Hand a request to a replica that has been advanced to now."""
        while not loop.submit(self.table(), replica, row, at_s):
            self._grow()

    def flush(self) -> None:
        """Hand over what was put off, advancing each replica up to then."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        targets, states, times_s = zip(*pending, strict=True)
        replicas, at_s = np.array(targets, dtype=np.int64), np.array(times_s)
        rows = np.array([state.request.index for state in states], dtype=np.int64)
        self._expect(int(rows.max()) + 1)
        fresh = np.array([self._row(state) for state in states], dtype=layout.REQUEST)
        for name in ("place", "room"):  # of those that were here before
            fresh[name] = self.state.request[name][rows]
        self.state.request[rows] = fresh
        done, why = 0, 0
        while why >= 0:
            done, why, replica = loop.feed(self.table(), rows, replicas, at_s, done)
            self._help(why, replica)

    def advance_all(self, until_s: float) -> None:
        """Advance all replicas to an instant, what happens at it excluded."""
        self._stands_at_s = until_s
        self.flush()
        why = 0
        while why >= 0:
            why, replica = loop.advance_all(self.table(), until_s)
            self._help(why, replica)

    def sync(self, now_s: float) -> None:
        """Advance all replicas to an instant, once, and tell who has ended."""
        if now_s != self._stands_at_s or self._pending:
            self.advance_all(now_s)
            self.tell()

    def advance(self, replica: int, until_s: float) -> bool:
        """Advance a replica to an instant, excluded, or till requests end; whether they did."""
        while True:
            why = loop.advance(self.table(), replica, until_s, True)
            if why in (loop.REACHED, loop.IDLE, loop.SOMEBODY_ENDED):
                return bool(why == loop.SOMEBODY_ENDED)
            self._help(why, replica)

    def first_end_s(self, replica: int) -> float:
        """Return an instant before which no request of a replica ends, if nothing comes."""
        while True:
            at_s = outside.first_end_s(self.table(), replica)
            if at_s >= 0:
                return float(at_s)
            self.book.fill(self.state)

    def tell(self) -> None:
        """Tell who has ended since this was done last, in order."""
        counter = self.state.counter
        if not counter[ENDED]:
            return
        rows = self.state.ended[: counter[ENDED]].tolist()
        counter[ENDED] = 0
        self.write_back(rows)
        for row in rows:
            ended = self.state.request[row]
            state = self.states.pop(row)
            state.status = Status.FINISHED
            self.members[ended["replica"]].hear(state.request, float(ended["finish_s"]))

    def held(self, replica: int) -> list[int]:
        """Return the rows of all requests a replica has: running, waiting, not yet seen."""
        of = self.state.replica[replica]
        out = np.zeros(int(of["running"] + of["waiting"] + of["inbox"]), dtype=np.int64)
        count = outside.held(self.table(), replica, out)
        rows: list[int] = out[:count].tolist()
        return rows

    def write_back(self, rows: Sequence[int]) -> None:
        """Write what has become of requests where others look for it."""
        if self.records is None:
            return
        requests = self.records[0]
        for row in rows:
            values = self.state.request[row].item()
            _, scheduled_s, first_s, last_s, finish_s = values[:5]
            delivered, cached, preemptions = (values[place] for place in _TOLD)
            requests.scheduled_s[row], requests.first_token_s[row] = scheduled_s, first_s
            requests.last_token_s[row], requests.output_tokens[row] = last_s, delivered
            state = self.states[row]
            state.cached_tokens, state.preemptions = cached, preemptions
            if not math.isnan(finish_s):
                requests.finish((state,), finish_s)

    def settle(self, horizon_s: float, requests: RequestRecorder, steps: StepRecorder) -> None:
        """The simulation ends: do what happens before, and write everything down, once."""
        if self._settled:
            return
        self._settled = True
        self.advance_all(horizon_s)
        self._write_all_back(requests)
        cores = np.array([member.index for member in self.members])
        log = written.Log(self, cores)
        steps.attach(log)
        for row, core in enumerate(cores.tolist()):
            requests.gaps_of(core).take_from(partial(log.gaps, row))

    def _write_all_back(self, requests: RequestRecorder) -> None:
        """Write back whoever was not yet; nobody hears of their ends any more."""
        rows = np.array(list(self.states), dtype=np.int64)
        told = self.state.request[rows]
        for column, name in (
            (requests.scheduled_s, "scheduled_s"), (requests.first_token_s, "first_token_s"),
            (requests.last_token_s, "last_token_s"), (requests.output_tokens, "delivered"),
        ):  # fmt: skip
            _put(column, rows, told[name])
        ended = told["status"] == layout.FINISHED
        _put(requests.finish_s, rows[ended], told["finish_s"][ended])
        _put(requests.outcome, rows[ended], FINISHED)
        cached, preemptions = told["cached_tokens"].tolist(), told["preemptions"].tolist()
        for state, hit, times in zip(self.states.values(), cached, preemptions, strict=True):
            state.cached_tokens, state.preemptions = hit, times

    def _expect(self, requests: int) -> None:
        """Make room for requests with indices below a number."""
        have = self.state.request.size
        if requests > have:
            self._extend("request", max(requests, 2 * have) - have)
            self.state.request[have:] = _ABSENT

    def _help(self, why: int, replica: int) -> None:
        if why == loop.PRICE_MISSING:
            self.book.fill(self.state)
        elif why == loop.FULL:
            self._grow()
        elif why == loop.STUCK:
            raise ServetwinError(
                f"replica {self.members[replica].index} cannot schedule any of its requests; "
                "this is a fault of the simulator, please report it with the scenario"
            )

    def _row(self, state: RequestState) -> tuple[float, ...]:
        """Return a request that has just come as a row of `layout.REQUEST`."""
        request, limits, nan = state.request, self.limits, math.nan
        self.states[request.index] = state
        segments = 0
        if request.content is not None and limits.enable_prefix_caching:
            segments = self._take_content(request.content, limits.output_limit(request), request)
        return (
            state.arrival_s, nan, nan, nan, nan,
            request.prompt_tokens, request.max_tokens, limits.output_limit(request),
            request.priority,
            0, 0, 0, 0,
            0, 0, 0, 0, 0,
            self._segments_used - abs(segments), segments, -1, 0,
            layout.ABSENT, -1, -1, -1,
        )  # fmt: skip

    def _take_content(self, content: Content, answer_tokens: int, request: Request) -> int:
        """Keep what a request consists of; return its segments, or minus its keys."""
        if isinstance(content, SegmentContent) and max(map(abs, content.ids)) < _ID_LIMIT:
            self._keep(content.ids, content.ends)
            return len(content.ids)
        tokens = request.prompt_tokens + answer_tokens
        numbers = self.numbers_of(content.block_keys(self.limits.block_size, tokens))
        self._keep(numbers, numbers)
        return -len(numbers)

    def numbers_of(self, keys: Sequence[int]) -> Sequence[int]:
        """Return keys as they stand in tables: large ones have numbers there."""
        if not keys or (min(keys) >= 0 and max(keys) < _LARGE):
            return keys
        known = self._known_keys
        return [
            key if 0 <= key < _LARGE else known.setdefault(key, _FIRST_KNOWN + len(known))
            for key in keys
        ]

    def _keep(self, ids: Sequence[int], ends: Sequence[int]) -> None:
        start, end = self._segments_used, self._segments_used + len(ids)
        self._reserve("segment_id", end)
        self._reserve("segment_end", end)
        self.state.segment_id[start:end], self.state.segment_end[start:end] = ids, ends
        self._segments_used = end

    def _grow(self) -> None:
        """Make room wherever there may be too little."""
        state, seqs = self.state, _most_running(self.limits)
        for name, place, margin in (
            ("step", layout.STEPS, loop.MOST_SAMPLED + 1), ("run", layout.RUNS, 1),
            ("taken", layout.TAKEN, self.limits.block_size),
            ("gap", layout.GAPS, seqs + loop.MOST_SAMPLED + 1), ("ended", ENDED, 2 * seqs),
        ):  # fmt: skip
            self._reserve(name, int(state.counter[place]) + margin)
        if int(state.counter[TABLE]) + self._longest > state.table_block.size:
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
        size = max(state.table_block.size, 2 * (used + self._longest))
        tables = {}
        for name in ("table_block", "table_key"):
            table = getattr(state, name)
            fresh = np.zeros(size if table.size else 0, dtype=table.dtype)
            fresh[:used] = table[source]
            tables[name] = fresh
        state.request["place"][order] = ends - rooms
        self._replace(tables)
        counter[TABLE] = used

    def _reserve(self, name: str, size: int) -> None:
        have = getattr(self.state, name).size
        if size > have:
            self._extend(name, max(size, 2 * have) - have)

    def _extend(self, name: str, more: int) -> None:
        array = getattr(self.state, name)
        grown = np.concatenate([array, np.zeros(more, dtype=array.dtype)])
        self._replace({name: grown})

    def _replace(self, arrays: dict[str, Any]) -> None:
        self.state = self.state._replace(**arrays)
        self._table = None


def _most_running(limits: SchedulerLimits) -> int:
    """Return how many requests can run at once: each holds a block that no other does."""
    return min(limits.max_num_seqs, limits.num_gpu_blocks - 1)


def _most_tokens(limits: SchedulerLimits) -> int:
    """Return how many tokens a step can compute: each gets a slot in a block."""
    slots = (limits.num_gpu_blocks - 1) * limits.block_size
    return min(limits.max_num_batched_tokens, slots)


def _policy(limits: SchedulerLimits, timer: StepTimer, host: HostCosts) -> Any:
    row = np.zeros(1, layout.POLICY)
    values: dict[str, float] = {
        "max_num_seqs": limits.max_num_seqs,
        "most_running": _most_running(limits),
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


def _put(column: list[Any], rows: Any, values: Any) -> None:
    """Write values into a list, many at a time."""
    array = np.array(column)
    array[rows] = values
    column[:] = array.tolist()


def _doubled(state: State, name: str) -> Any:
    array = getattr(state, name)
    return np.concatenate([array, np.zeros_like(array)])


def _state(limits: SchedulerLimits, policy: Any) -> State:
    replicas = 1
    seqs, blocks, size = _most_running(limits), limits.num_gpu_blocks, limits.block_size
    places = 1 << (2 * blocks - 1).bit_length() if limits.enable_prefix_caching else 1
    state = State(
        policy=policy,
        replica=np.zeros(replicas, layout.REPLICA),
        request=np.zeros(_ROWS, layout.REQUEST),
        block=np.zeros((replicas, blocks), layout.BLOCK),
        hash=np.zeros((replicas, places), layout.SLOT),
        running=np.zeros((replicas, seqs + 1), dtype=np.int64),
        plan=np.zeros((replicas, 2, seqs + 1), layout.ENTRY),
        flight=np.zeros((replicas, 2), layout.FLIGHT),
        by_source=np.zeros((replicas, 4)),
        table_block=np.zeros(_BLOCKS, dtype=np.int32),
        table_key=np.zeros(_BLOCKS, dtype=np.int64),
        segment_id=np.zeros(_ROWS, dtype=np.int64),
        segment_end=np.zeros(_ROWS, dtype=np.int64),
        step=np.zeros(4 * _ROWS, layout.STEP),
        run=np.zeros(_ROWS, layout.RUN),
        taken=np.zeros(16 * _ROWS, dtype=np.int32),
        gap=np.zeros(16 * _ROWS, layout.GAP),
        ended=np.zeros(_ROWS, dtype=np.int64),
        counter=np.zeros(COUNTERS, dtype=np.int64),
        scratch=np.zeros(seqs + 1, dtype=np.int64),
        split=np.zeros(9),
        bucket=np.zeros((size, 2), dtype=np.int32),
        event=np.zeros((2 * seqs + 2, 2), dtype=np.int64),
    )
    state.request[:] = _ABSENT
    return state


def _absent() -> Any:
    """Return the row of a request that has not come."""
    row = np.zeros((), layout.REQUEST)
    for name in ("scheduled_s", "first_token_s", "last_token_s", "finish_s"):
        row[name] = math.nan
    row["cached_tokens"] = -1
    row["status"] = layout.ABSENT
    row["replica"] = row["before"] = row["after"] = -1
    return row


_ABSENT = _absent()
