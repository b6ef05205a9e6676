"""A session stays with its replica."""

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from twin.engine.routers.base import Routable
from twin.engine.routers.least_requests import fewest_requests
from twin.request import Request

_index = attrgetter("index")


class SessionSticky:
    """As long as a session's replica takes requests it gets them all.

    A new session, one whose replica is gone, and a request without session go to the replica with
    the fewest requests.
    """

    looks = True

    def __init__(self) -> None:
        self._home: dict[int, int] = {}

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """See `Router.choose`."""
        session = request.session
        home = self._home.get(session, -1)
        if home >= 0:
            at = bisect_left(replicas, home, key=_index)
            if at < len(replicas) and replicas[at].index == home:
                return at
        at = fewest_requests(replicas)
        if session >= 0:
            self._home[session] = replicas[at].index
        return at
