"""A simpy environment that takes absolute times.

Relative time-outs drift in the last bit (`now + (at - now) != at`), and a faster engine must be
able to reproduce every instant exactly.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

import simpy
from simpy.core import EmptySchedule
from simpy.events import NORMAL, URGENT, Event, EventPriority

__all__ = ["NORMAL", "URGENT", "Clock", "Event"]


class _NobodyWaits(list[Any]):
    """The callbacks of an event that was withdrawn: none, whatever is added."""

    def append(self, callback: Any) -> None:
        """See the class."""

    def remove(self, callback: Any) -> None:
        """See the class."""


class Clock(simpy.Environment):
    """`simpy.Environment` plus `at()`: an event at an absolute time.

    An event that nobody waits for any more never happens: it does not move `now` either.
    """

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
        """Let events not happen that have not yet; whoever comes to wait for one waits for ever."""
        for event in events:
            if event.callbacks is not None:
                event.callbacks = _NobodyWaits()

    def step(self) -> None:
        """Let the next event happen that somebody waits for.

        Raises:
            EmptySchedule: there is none.
        """
        self._drop_idle()
        if not self._queue:
            raise EmptySchedule
        super().step()

    def _drop_idle(self) -> None:
        queue = self._queue
        while queue and not queue[0][3].callbacks and queue[0][3]._ok:
            event = heappop(queue)[3]
            if not isinstance(event.callbacks, _NobodyWaits):
                event.callbacks = None  # type: ignore[assignment]  # it is over

    def jump(self, time_s: float) -> bool:
        """Let it be `time_s` at once, if nothing is to happen until then; say whether it is."""
        self._drop_idle()
        if self._queue and self._queue[0][0] <= time_s:
            return False
        self._now = time_s
        return True
