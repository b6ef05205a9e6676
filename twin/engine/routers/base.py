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

    @property
    def load_tokens(self) -> int:
        """Tokens of their prompts and of their answers so far."""
        ...

    def cached_prefix_tokens(self, request: Request) -> int:
        """Return the length of the longest prefix of the prompt that its cache holds."""
        ...


class Router(Protocol):
    """Chooses a replica for each request, in the order in which they come.

    `looks`: it asks replicas about themselves, and not only how many there are.
    """

    looks: bool

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """Return the place in `replicas` of the one that gets `request`.

        Args:
            request: the request.
            replicas: those that take requests now, by number; at least one.
        """
        ...
