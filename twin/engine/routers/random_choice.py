"""Any replica, by chance."""

from collections.abc import Sequence

from twin.engine.routers.base import Routable
from twin.engine.routers.uniforms import Uniforms
from twin.request import Request


class RandomChoice:
    """Every replica is as likely as every other.

    Args:
        draws: its random numbers.
    """

    looks = False

    def __init__(self, draws: Uniforms) -> None:
        self._draws = draws

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """See `Router.choose`."""
        del request
        return self._draws.below(len(replicas))
