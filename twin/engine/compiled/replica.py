"""`CompiledReplica`: an engine core whose state is a row of a `CompiledFleet`.

It is passive: it advances when somebody asks it something, or at the end. Where others must hear of
ends when they happen, it sets itself an alarm for the first instant at which a request may end.
"""

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from twin.engine.clock import NORMAL, Clock, Event
from twin.engine.compiled import entry
from twin.engine.compiled.fleet import CompiledFleet
from twin.engine.delivery import DeliveryQueue
from twin.engine.recorder import RequestRecorder
from twin.engine.serving import OnEnd
from twin.engine.step_recorder import StepRecorder
from twin.request import Request, RequestState, Status
from twin.scheduling.base import PrefixCounters
from twin.scheduling.prompt_keys import PromptKeys

_COUNTERS = ("requests", "queries", "hits", "again_requests", "again_queries", "again_hits")


class CompiledReplica:
    """See the module; offers what `twin.engine.replica.Replica` does.

    Args:
        clock: of this run.
        index: number of the engine core.
        fleet: where its state lies.
        hears: others hear of ends when they happen; else whenever it is asked.

    Attributes:
        index: see above.
        prompt_keys: who works out prompts' keys; replicas may share it.
    """

    delivery: DeliveryQueue | None = None
    passive = True

    def __init__(self, clock: Clock, index: int, fleet: CompiledFleet, *, hears: bool) -> None:
        self.index = index
        self.prompt_keys = PromptKeys()
        self._clock, self._fleet, self._hears = clock, fleet, hears
        self._row = fleet.add(self)
        self._alarm: Event | None = None
        self._ringing = False
        self._on_end: OnEnd | None = None

    @property
    def engines(self) -> "tuple[CompiledReplica, ...]":
        """The engine cores behind it: itself."""
        return (self,)

    @property
    def load_requests(self) -> int:
        """See `Replica.load_requests`."""
        row = self._values
        return int(row["running"] + row["waiting"] + row["inbox"])

    @property
    def load_tokens(self) -> int:
        """See `Replica.load_tokens`."""
        return int(self._values["live_tokens"])

    @property
    def waiting_requests(self) -> int:
        """See `Replica.waiting_requests`."""
        return int(self._values["waiting"] + self._values["inbox"])

    @property
    def used_blocks(self) -> int:
        """See `Replica.used_blocks`."""
        return self.usable_blocks - int(self._values["free_blocks"])

    @property
    def usable_blocks(self) -> int:
        """See `Replica.usable_blocks`."""
        return self._fleet.limits.num_gpu_blocks - 1

    @property
    def prefix(self) -> PrefixCounters:
        """See `Replica.prefix`."""
        return PrefixCounters(*(int(self._values[name]) for name in _COUNTERS))

    @property
    def skipped_steps(self) -> int:
        """See `Replica.skipped_steps`."""
        return int(self._values["skipped"])

    @property
    def time_by_source_s(self) -> list[float]:
        """See `Replica.time_by_source_s`."""
        found: list[float] = self._fleet.state.by_source[self._row].tolist()
        return found

    @property
    def _values(self) -> Any:
        return self._fleet.state.replica[self._row]

    def sync(self) -> None:
        """See `ServingInstance.sync`."""
        self._bring_here()

    def cached_prefix_tokens(self, request: Request) -> int:
        """See `ServingInstance.cached_prefix_tokens`."""
        limits = self._fleet.limits
        if not limits.enable_prefix_caching:
            return 0
        fleet = self._fleet
        keys = fleet.keys.of(self.prompt_keys.of(request, limits.block_size))
        found = entry.cached_keys(fleet.address(), self._row, np.array(keys, dtype=np.int64))
        return int(found) * limits.block_size

    def submit(self, state: RequestState) -> int:
        """See `Replica.submit`."""
        fleet, now_s = self._fleet, self._clock.now
        if self._hears:
            fleet.advance(self._row, now_s)
            fleet.submit(self._row, fleet.take(state), now_s)
            self._arm()
        else:
            fleet.put_off(self._row, state, now_s)
        return self.index

    def catch_up(self, request: Request) -> None:
        """See `ServingInstance.catch_up`."""
        self._bring_here()
        if request.index in self._fleet.states:
            self._fleet.write_back([request.index])

    def abort(self, state: RequestState) -> bool:
        """See `ServingInstance.abort`."""
        self._bring_here()
        fleet, row = self._fleet, state.request.index
        if fleet.states.get(row) is not state:
            return False
        if not entry.abort(fleet.address(), self._row, row):
            return False
        state.status, state.finish_reason = Status.FINISHED, "abort"
        fleet.write_back([row])
        del fleet.states[row]
        self._arm()
        return True

    def crash(self) -> list[RequestState]:
        """See `ServingInstance.crash`."""
        self._bring_here()
        fleet = self._fleet
        rows = fleet.held(self._row)
        fleet.write_back(rows)
        entry.reset(fleet.address(), self._row)
        lost = [fleet.states.pop(row) for row in rows]
        for state in lost:
            state.status, state.finish_reason = Status.FINISHED, "lost"
        self._arm()
        return lost

    def run(
        self, requests: RequestRecorder, steps: StepRecorder, on_end: OnEnd
    ) -> Generator[Event, None, None]:
        """See `ServingInstance.run`: only takes note of who hears what."""
        self._fleet.records = requests, steps
        self._on_end = on_end
        yield self._clock.event()

    def settle(self, horizon_s: float, requests: RequestRecorder, steps: StepRecorder) -> float:
        """See `Replica.settle`; the first of a fleet does it for all."""
        self._fleet.settle(horizon_s, requests, steps)
        return float(self._values["now_s"])

    def hear(self, request: Request, end_s: float) -> None:
        """Tell that a request ended."""
        if self._on_end is not None:
            self._on_end(request, end_s)

    def _bring_here(self) -> None:
        if self._hears:
            self._fleet.advance(self._row, self._clock.now)
        else:
            self._fleet.sync(self._clock.now)

    def _arm(self) -> None:
        """Set the alarm for the first instant at which a request may end."""
        if self._ringing or not self._hears:
            return
        if self._alarm is not None:
            self._clock.withdraw((self._alarm,))
            self._alarm = None
        at_s = self._fleet.first_end_s(self._row)
        if at_s < math.inf:
            self._alarm = self._clock.call_at(max(at_s, self._clock.now), self._ring, NORMAL)

    def _ring(self) -> None:
        """Do what happens now, and tell who ended."""
        self._alarm, self._ringing = None, True
        beyond_s = math.nextafter(self._clock.now, math.inf)
        # A call that is due now waits: what it begins may be a run of steps, to be taken at once.
        while self._fleet.advance(self._row, beyond_s, self._clock.now):
            self._fleet.tell()
        if self._fleet.first_end_s(self._row) <= self._clock.now:
            while self._fleet.advance(self._row, beyond_s):
                self._fleet.tell()
        self._ringing = False
        self._arm()
