"""What one client wants, and its attempts to get it."""

import math
from dataclasses import dataclass, field

from twin.engine.clock import Event
from twin.request import Request


@dataclass(slots=True, eq=False)
class Ask:
    """One request of the workload, however often it is sent.

    Attributes:
        request: as the workload knows it.
        delay_s: pause before the last attempt.
        serving: the attempt that a server works on, or will; None: there is none.
        answer: an attempt that a server has served to its end; None: there is none.
    """

    request: Request
    delay_s: float = 0.0
    serving: "Attempt | None" = None
    answer: "Attempt | None" = None


@dataclass(slots=True, eq=False)
class Attempt:
    """A request as sent once: a row of the request table.

    Attributes:
        request: with the index of its row.
        ask: what it is an attempt at.
        first: the first attempt's row.
        number: from 1.
        timers: events at which its client loses patience.
        gave_up_s: when its client closed the connection; NaN: it did not.
        left_s: when no server had anything left to do for it; NaN: not yet.
        served_by: the attempt whose answer it waits for or got; None: its own.
        waiting: the attempt that waits for its answer; None: there is none.
    """

    request: Request
    ask: Ask
    first: int
    number: int = 1
    timers: list[Event] = field(default_factory=list)
    gave_up_s: float = math.nan
    left_s: float = math.nan
    served_by: "Attempt | None" = None
    waiting: "Attempt | None" = None

    @property
    def gave_up(self) -> bool:
        """Whether its client closed the connection."""
        return not math.isnan(self.gave_up_s)

    @property
    def has_left(self) -> bool:
        """Whether no server has anything left to do for it."""
        return not math.isnan(self.left_s)

    @property
    def server_row(self) -> int:
        """The row of the attempt that a server works on for it."""
        return (self.served_by or self).request.index
