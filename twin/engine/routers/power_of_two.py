"""Of two replicas drawn by chance the one with fewer requests."""

from collections.abc import Sequence

from twin.engine.routers.base import Routable
from twin.engine.routers.uniforms import Uniforms
from twin.request import Request


class PowerOfTwo:
    """Two different ones are drawn; of equal ones the first drawn is taken.

    Source: M. Mitzenmacher, "The power of two choices in randomized load balancing" (2001).

    Args:
        draws: its random numbers.
    """

    looks = True

    def __init__(self, draws: Uniforms) -> None:
        self._draws = draws

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """See `Router.choose`."""
        del request
        count = len(replicas)
        if count == 1:
            return 0
        first = self._draws.below(count)
        second = self._draws.below(count - 1)
        second += second >= first
        return min(first, second, key=lambda at: (replicas[at].load_requests, at != first))
