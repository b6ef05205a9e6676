"""The replica that holds the fewest tokens."""

from collections.abc import Sequence

from twin.engine.routers.base import Routable
from twin.request import Request


class LeastTokens:
    """Counts the prompts of a replica's requests and their answers so far; of equal ones the first.

    How long an answer will be nobody in front of an engine knows.
    """

    looks = True

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """See `Router.choose`."""
        del request
        loads = [replica.load_tokens for replica in replicas]
        return loads.index(min(loads))
