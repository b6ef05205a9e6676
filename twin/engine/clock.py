"""A simpy environment that takes absolute times.

Relative time-outs drift in the last bit (`now + (at - now) != at`), and a faster engine must be
able to reproduce every instant exactly.
"""

from heapq import heappop, heappush

import simpy
from simpy.core import EmptySchedule
from simpy.events import NORMAL, URGENT, Event, EventPriority

__all__ = ["NORMAL", "URGENT", "Clock", "Event"]


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

    def cancel(self, event: Event) -> None:
        """Let an event not happen; one that has happened already stays as it is."""
        if event.callbacks is not None:
            event.callbacks.clear()

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
            heappop(queue)[3].callbacks = None  # type: ignore[assignment]  # it is over

    def jump(self, time_s: float) -> bool:
        """Let it be `time_s` at once, if nothing is to happen until then; say whether it is."""
        self._drop_idle()
        if self._queue and self._queue[0][0] <= time_s:
            return False
        self._now = time_s
        return True
