"""Which replica a request goes to: what every router offers, and what it may ask."""

from collections.abc import Sequence
from typing import Protocol

from twin.request import Request


class Routable(Protocol):
    """What a router may ask of a replica; everything is as of this instant."""

    @property
    def index(self) -> int:
        """Its number among all replicas; it keeps it."""
        ...

    @property
    def load_requests(self) -> int:
        """Requests running and waiting."""
        ...


class Router(Protocol):
    """Chooses a replica for each request, in the order in which they come."""

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """Return the place in `replicas` of the one that gets `request`.

        Args:
            request: the request.
            replicas: those that take requests now, by number; at least one.
        """
        ...
