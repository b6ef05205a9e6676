"""Routers: which replica a request goes to, one file a rule."""

from collections.abc import Callable
from typing import Any

import numpy as np

from twin.engine.routers.base import Routable, Router
from twin.engine.routers.least_requests import LeastRequests
from twin.engine.routers.least_tokens import LeastTokens
from twin.engine.routers.power_of_two import PowerOfTwo
from twin.engine.routers.prefix_aware import PrefixAware
from twin.engine.routers.random_choice import RandomChoice
from twin.engine.routers.round_robin import RoundRobin
from twin.engine.routers.session_sticky import SessionSticky
from twin.engine.routers.uniforms import Uniforms

ROUTERS: dict[str, Callable[[Any, np.random.Generator], Router]] = {
    "round_robin": lambda _spec, _rng: RoundRobin(),
    "random": lambda _spec, rng: RandomChoice(Uniforms(rng)),
    "least_requests": lambda _spec, _rng: LeastRequests(),
    "least_tokens": lambda _spec, _rng: LeastTokens(),
    "power_of_two": lambda _spec, rng: PowerOfTwo(Uniforms(rng)),
    "prefix_aware": lambda spec, _rng: PrefixAware(spec),
    "session_sticky": lambda _spec, _rng: SessionSticky(),
}
"""By `cluster.router.kind`: makes a router of (its part of the scenario, its random stream)."""

__all__ = ["ROUTERS", "RoundRobin", "Routable", "Router"]
