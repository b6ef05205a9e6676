"""A simpy environment that takes absolute times.

Relative time-outs drift in the last bit (`now + (at - now) != at`), and a faster engine must be
able to reproduce every instant exactly.
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heappush

import simpy
from simpy.events import NORMAL, URGENT, Event, EventPriority

__all__ = ["NORMAL", "URGENT", "Clock", "Event"]


class Clock(simpy.Environment):
    """`simpy.Environment` plus `at()`: an event at an absolute time."""

    def at(self, time_s: float, priority: EventPriority = NORMAL) -> Event:
        """Return an event that fires at `time_s` (now or later)."""
        if time_s < self._now:
            raise ValueError(f"{time_s} lies before now ({self._now})")
        event = Event(self)
        event._ok = True
        event._value = None
        heappush(self._queue, (time_s, priority, next(self._eid), event))
        return event

    def call_at(
        self, time_s: float, function: Callable[[], None], priority: EventPriority = URGENT
    ) -> Event:
        """Call `function` at `time_s` (now or later); return the event that does."""
        event = self.at(time_s, priority)
        callbacks = event.callbacks
        if callbacks is not None:  # a fresh event always has them
            callbacks.append(lambda _: function())
        return event

    def withdraw(self, events: Iterable[Event]) -> None:
        """Let events not happen that have not yet; the clock does not go on to them."""
        gone = {id(event) for event in events}
        self._queue = [entry for entry in self._queue if id(entry[3]) not in gone]
        heapify(self._queue)

    def jump(self, time_s: float) -> bool:
        """Let it be `time_s` at once, if nothing is to happen until then; say whether it is."""
        if self._queue and self._queue[0][0] <= time_s:
            return False
        self._now = time_s
        return True
