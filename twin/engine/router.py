"""Which replica a request goes to."""

from collections.abc import Callable, Sequence
from typing import Protocol

from twin.request import Request


class Routable(Protocol):
    """What a router may ask of a replica."""

    @property
    def load_requests(self) -> int:
        """Requests running and waiting."""
        ...


class Router(Protocol):
    """Chooses a replica for each request, in order of arrival."""

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """Return the index of the replica that gets `request`."""
        ...


class RoundRobin:
    """The next replica in turn, whatever its load."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """See `Router.choose`."""
        del request
        index = self._next % len(replicas)
        self._next = index + 1
        return index


ROUTERS: dict[str, Callable[[], Router]] = {"round_robin": RoundRobin}
