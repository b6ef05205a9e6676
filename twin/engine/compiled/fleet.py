"""`CompiledFleet`: the arrays of some replicas of one kind, and what Python does for them."""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hwmodels.host import HostCosts
from twin.engine.compiled import entry, layout, loop, written
from twin.engine.compiled.arrays import (
    ABSENT,
    doubled,
    fresh_state,
    most_running,
    most_tokens,
    policy_row,
)
from twin.engine.compiled.keys import ID_LIMIT, KeyNumbers
from twin.engine.compiled.layout import ENDED, TABLE
from twin.engine.compiled.memory import table_of
from twin.engine.compiled.prices import PriceBook
from twin.engine.compiled.told import tell, tell_many
from twin.engine.recorder import RequestRecorder
from twin.engine.step_recorder import StepRecorder
from twin.errors import ServetwinError
from twin.llm.step_time import StepTimer
from twin.request import Content, Request, RequestState, SegmentContent, Status
from twin.scheduling.limits import SchedulerLimits

if TYPE_CHECKING:
    from twin.engine.compiled.replica import CompiledReplica

_BY_REPLICA = (
    "replica", "block", "hash", "running", "plan", "flight", "by_source",
)  # fmt: skip


class CompiledFleet:
    """Replicas of one kind behind one set of arrays.

    Args:
        limits: the policy of each.
        timer: times their steps.
        host: host costs around them.
        stride: of steps and gaps one is kept of so many; 0: none.
        replicas: how many there will be at first.

    Attributes:
        state, book: the arrays.
        keys: numbers of prefix-cache keys.
        members: the replicas, in the order of their rows.
        records: where they write; None: none has started.
        states: the requests that were taken, by index.
    """

    def __init__(
        self,
        limits: SchedulerLimits,
        timer: StepTimer,
        host: HostCosts,
        stride: int = 1,
        replicas: int = 1,
    ) -> None:
        self.limits = limits
        self.book = PriceBook(timer, most_running(limits), most_tokens(limits))
        self.state = fresh_state(limits, policy_row(limits, timer, host), max(1, replicas))
        self.state.policy["stride"] = stride
        self.members: list[CompiledReplica] = []
        self.records: tuple[RequestRecorder, StepRecorder] | None = None
        self._settled = False
        self._stands_at_s = -math.inf
        self.states: dict[int, RequestState] = {}
        self._segments_used = 0
        self.keys = KeyNumbers()
        self._pending: list[tuple[int, RequestState, float]] = []
        self._longest = -(-limits.max_model_len // limits.block_size) + 3
        self._table: Any = None
        self._address = 0

    def add(self, member: "CompiledReplica") -> int:
        """Make room for one more replica; return its row."""
        row = len(self.members)
        have = self.state.replica.size
        if row == have:
            self._replace({name: doubled(self.state, name) for name in _BY_REPLICA})
        self.members.append(member)
        entry.reset(self.address(), row)
        return row

    def table(self) -> Any:
        """Return the table that compiled code reads (`twin.engine.compiled.memory`)."""
        if self._table is None or self.book.moved:
            self._table = table_of(self.state, self.book.prices)
            self._address = int(self._table.ctypes.data)
            self.book.moved = False
        return self._table

    def address(self) -> int:
        """Return where that table is, for `twin.engine.compiled.entry`."""
        self.table()
        return self._address

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
        while not entry.submit(self.address(), replica, row, at_s):
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
        self._make_room(rows.size)
        done, why = 0, 0
        while why >= 0:
            done, why, replica = entry.feed(self.address(), rows, replicas, at_s, done)
            self._help(why, replica)

    def advance_all(self, until_s: float) -> None:
        """Advance all replicas to an instant, what happens at it excluded."""
        self._stands_at_s = until_s
        self.flush()
        why = 0
        while why >= 0:
            why, replica = entry.advance_all(self.address(), until_s)
            self._help(why, replica)

    def sync(self, now_s: float) -> None:
        """Advance all replicas to an instant, once, and tell who has ended."""
        if now_s != self._stands_at_s or self._pending:
            self.advance_all(now_s)
            self.tell()

    def advance(self, replica: int, until_s: float, call_until_s: float = math.inf) -> bool:
        """Advance a replica to an instant, excluded, or till requests end; whether they did.

        `call_until_s`: from this instant on no schedule call is made, if that is earlier.
        """
        calls_s = min(until_s, call_until_s)
        while True:
            why = entry.advance(self.address(), replica, calls_s, until_s, True)
            if why in (loop.REACHED, loop.IDLE, loop.SOMEBODY_ENDED):
                return bool(why == loop.SOMEBODY_ENDED)
            self._help(why, replica)

    def first_end_s(self, replica: int) -> float:
        """Return an instant before which no request of a replica ends, if nothing comes."""
        while True:
            at_s = entry.first_end_s(self.address(), replica)
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
        count = entry.held(self.address(), replica, out)
        rows: list[int] = out[:count].tolist()
        return rows

    def write_back(self, rows: Sequence[int]) -> None:
        """Write what has become of requests where others look for it."""
        if self.records is not None:
            for row in rows:
                tell(self.records[0], self.states[row], self.state.request[row].item())

    def settle(self, horizon_s: float, requests: RequestRecorder, steps: StepRecorder) -> None:
        """The simulation ends: do what happens before, and write everything down, once."""
        if self._settled:
            return
        self._settled = True
        self.advance_all(horizon_s)
        rows = np.array(list(self.states), dtype=np.int64)
        tell_many(requests, self.states.values(), self.state.request[rows])
        cores = np.array([member.index for member in self.members])
        log = written.Log(self, cores)
        steps.attach(log)
        for row, core in enumerate(cores.tolist()):
            requests.gaps_of(core).take_from(partial(log.gaps, row))

    def _expect(self, requests: int) -> None:
        """Make room for requests with indices below a number."""
        have = self.state.request.size
        if requests > have:
            self._extend("request", max(requests, 2 * have) - have)
            self.state.request[have:] = ABSENT

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
        if isinstance(content, SegmentContent) and max(map(abs, content.ids)) < ID_LIMIT:
            self._keep(content.ids, content.ends)
            return len(content.ids)
        tokens = request.prompt_tokens + answer_tokens
        numbers = self.keys.of(content.block_keys(self.limits.block_size, tokens))
        self._keep(numbers, numbers)
        return -len(numbers)

    def _keep(self, ids: Sequence[int], ends: Sequence[int]) -> None:
        start, end = self._segments_used, self._segments_used + len(ids)
        self._reserve("segment_id", end)
        self._reserve("segment_end", end)
        self.state.segment_id[start:end], self.state.segment_end[start:end] = ids, ends
        self._segments_used = end

    def _make_room(self, requests: int) -> None:
        """Give the logs what so many requests come to write, as far as that can be guessed."""
        if self.state.policy["stride"][0] == 1:
            for name, place, each in (
                ("step", layout.STEPS, 5), ("run", layout.RUNS, 2), ("gap", layout.GAPS, 8),
                ("taken", layout.TAKEN, 26),
            ):  # fmt: skip
                self._reserve(name, int(self.state.counter[place]) + each * requests)

    def _grow(self) -> None:
        """Make room wherever there may be too little."""
        state, seqs = self.state, most_running(self.limits)
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
