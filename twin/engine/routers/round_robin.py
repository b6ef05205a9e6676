"""The next replica in turn, whatever its load."""

from collections.abc import Sequence

from twin.engine.routers.base import Routable
from twin.request import Request


class RoundRobin:
    """Takes the replicas in turn."""

    looks = False

    def __init__(self) -> None:
        self._next = 0

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """See `Router.choose`."""
        del request
        index = self._next % len(replicas)
        self._next = index + 1
        return index
