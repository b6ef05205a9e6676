"""What the loop of a run asks of a server: an engine core, or several behind one front end."""

from collections.abc import Callable, Generator
from typing import Protocol

from twin.engine.clock import Event
from twin.engine.delivery import DeliveryQueue
from twin.engine.recorder import RequestRecorder
from twin.engine.step_recorder import StepRecorder
from twin.request import Request, RequestState
from twin.scheduling.base import PrefixCounters
from twin.scheduling.prompt_keys import PromptKeys

OnEnd = Callable[[Request, float], None]
"""Told of a request that ended, and when its client saw that."""


class ServingCore(Protocol):
    """One engine core, as far as others look into it; everything is as of the last `sync`.

    Attributes:
        prompt_keys: who works out prompts' keys; replicas may share it.
        delivery: the server's process, where it may limit; None: tokens reach clients at once.
    """

    prompt_keys: PromptKeys
    delivery: DeliveryQueue | None

    @property
    def waiting_requests(self) -> int:
        """Requests waiting and not yet seen."""
        ...

    @property
    def used_blocks(self) -> int:
        """KV blocks that requests hold."""
        ...

    @property
    def usable_blocks(self) -> int:
        """KV blocks that requests can hold."""
        ...

    @property
    def prefix(self) -> PrefixCounters:
        """Counters of its prefix cache."""
        ...

    @property
    def skipped_steps(self) -> int:
        """Steps that it took as part of a run, not one by one."""
        ...

    @property
    def time_by_source_s(self) -> list[float]:
        """GPU seconds by how their duration was obtained."""
        ...

    def settle(self, horizon_s: float, requests: RequestRecorder, steps: StepRecorder) -> float:
        """The simulation ends: write down what is known and was not yet.

        Args:
            horizon_s: what would happen then or later does not; infinite: everything happens.
            requests, steps: where to.

        Returns:
            The instant of its last event, or a later one that the clock has come to.
        """
        ...


class ServingInstance(Protocol):
    """What takes requests from a router: an engine core, or several behind one front end.

    `passive`: nothing is written down but when it is asked something, or a request ends.
    """

    passive: bool

    @property
    def engines(self) -> "tuple[ServingCore, ...]":
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

    def catch_up(self, request: Request) -> None:
        """Write down what has become of a request before now, or of all that it has."""
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
