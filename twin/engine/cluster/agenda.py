"""What is planned to happen to a cluster, as long as anybody is there to be served."""

from collections.abc import Callable

from twin.engine.clock import URGENT, Clock, Event


class Agenda:
    """Events that keep no simulation going: once it is closed, those left do not happen.

    Args:
        clock: of this run.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._planned: list[Event] = []
        self.closed = False

    def at(self, time_s: float) -> Event:
        """Return an event at `time_s`, before anything an engine does at that instant."""
        return self._planned_event(self._clock.at(time_s, URGENT))

    def call_at(self, time_s: float, function: Callable[[], None]) -> None:
        """Call `function` at `time_s`, before anything an engine does at that instant."""
        self._planned_event(self._clock.call_at(time_s, function))

    def _planned_event(self, event: Event) -> Event:
        if self.closed:
            self._clock.withdraw((event,))
        else:
            self._planned.append(event)
        return event

    def close(self) -> None:
        """Everybody is served."""
        if not self.closed:
            self.closed = True
            self._clock.withdraw(self._planned)
            self._planned.clear()
