"""The replica with the fewest requests, running and waiting."""

from collections.abc import Sequence
from operator import attrgetter

from twin.engine.routers.base import Routable
from twin.request import Request

_requests = attrgetter("load_requests")


class LeastRequests:
    """Of equal ones the first. (SGLang Model Gateway and NGINX call it least connections.)"""

    looks = True

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """See `Router.choose`."""
        del request
        return fewest_requests(replicas)


def fewest_requests(replicas: Sequence[Routable]) -> int:
    """Return the place of the replica with the fewest requests, of equal ones the first."""
    loads = list(map(_requests, replicas))
    return loads.index(min(loads))
