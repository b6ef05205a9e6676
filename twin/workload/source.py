"""The seam between a workload and the engine: requests in, completions back."""

from collections.abc import Sequence
from typing import Protocol

from twin.request import Request


class RequestSource(Protocol):
    """Produces requests, some of them only when others end (closed loops, sessions, stages).

    Every request has a fresh `index`; indices are dense and in order of creation. A source is
    used for one run and then spent.

    `hears_of_ends`: `on_end` has to be called when a request ends; else any time after.
    """

    hears_of_ends: bool

    def start(self) -> Sequence[Request]:
        """Return the requests known from the start, in order of arrival."""
        ...

    def on_end(self, request: Request, end_s: float, *, rejected: bool) -> Sequence[Request]:
        """Return requests that `request`'s end brings about, arrivals at or after `end_s`.

        Called exactly once for each request, in order of time.
        """
        ...

    @property
    def expected_requests(self) -> int | None:
        """How many there will be in all, for progress; None: unknown."""
        ...
