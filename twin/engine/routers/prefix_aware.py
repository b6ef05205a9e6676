"""The replica whose cache holds most of the prompt, as long as the load is in balance."""

from collections.abc import Sequence

from twin.cluster import PrefixAwareRouter
from twin.engine.routers.base import Routable
from twin.engine.routers.least_requests import fewest_requests
from twin.request import Request


class PrefixAware:
    """The rule of SGLang Model Gateway's `cache_aware` policy, with its defaults.

    If the most loaded replica has more than `balance_abs_threshold` requests more than the least
    loaded and more than `balance_rel_threshold` times as many, the least loaded gets the request.
    Else the one with the longest cached prefix does (of equal ones that with fewer requests), if
    that is more than `cache_threshold` of the prompt; otherwise the least loaded.

    The gateway guesses what replicas cache from what it sent them; here the caches are asked.

    Args:
        spec: the thresholds.
    """

    looks = True

    def __init__(self, spec: PrefixAwareRouter) -> None:
        self._spec = spec

    def choose(self, request: Request, replicas: Sequence[Routable]) -> int:
        """See `Router.choose`."""
        spec = self._spec
        idlest = fewest_requests(replicas)
        if request.content is None:
            return idlest
        least = replicas[idlest].load_requests
        most = max(replica.load_requests for replica in replicas)
        if most - least > spec.balance_abs_threshold and most > spec.balance_rel_threshold * least:
            return idlest
        cached = [replica.cached_prefix_tokens(request) for replica in replicas]
        longest = max(cached)
        if longest <= spec.cache_threshold * request.prompt_tokens:
            return idlest
        holders = [at for at, tokens in enumerate(cached) if tokens == longest]
        return min(holders, key=lambda at: replicas[at].load_requests)
