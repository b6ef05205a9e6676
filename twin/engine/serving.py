"""What the loop of a run asks of a server: an engine core, or several behind one front end."""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Protocol

from twin.engine.clock import Event
from twin.engine.recorder import RequestRecorder, StepRecorder
from twin.request import Request, RequestState

if TYPE_CHECKING:
    from twin.engine.replica import Replica

OnEnd = Callable[[Request, float], None]
"""Told of a request that ended, and when its client saw that."""


class ServingInstance(Protocol):
    """What takes requests from a router: an engine core, or several behind one front end."""

    @property
    def engines(self) -> "tuple[Replica, ...]":
        """The engine cores behind it."""
        ...

    @property
    def load_requests(self) -> int:
        """Requests running, waiting and not yet seen."""
        ...

    @property
    def load_tokens(self) -> int:
        """Tokens of these requests' prompts and of their answers that have left the engine."""
        ...

    def sync(self) -> None:
        """Advance to the present instant, exclusive, if nothing else makes it do so.

        To be called before anything is asked.
        """
        ...

    def cached_prefix_tokens(self, request: Request) -> int:
        """Return the length of the longest prefix of a prompt that its cache holds."""
        ...

    def submit(self, state: RequestState) -> int:
        """Take a request now; return the index of the engine core that has it."""
        ...

    def catch_up(self) -> None:
        """Write down all that happened before now."""
        ...

    def abort(self, state: RequestState) -> bool:
        """The client of a request submitted before gives it up now; False: it had ended."""
        ...

    def crash(self) -> list[RequestState]:
        """Lose everything now and start anew, empty and idle; return the requests it held.

        Requests come in order: running, waiting, not yet seen. Those that clients have given up
        are not among them. Their states are spent (`finish_reason` "lost"): who serves them
        again makes new ones.
        """
        ...

    def run(
        self, requests: RequestRecorder, steps: StepRecorder, on_end: OnEnd
    ) -> Generator[Event, None, None]:
        """Serve, as a simpy process."""
        ...
