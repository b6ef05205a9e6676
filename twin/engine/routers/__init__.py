"""Routers: which replica a request goes to, one file a rule."""

from collections.abc import Callable

from twin.engine.routers.base import Routable, Router
from twin.engine.routers.round_robin import RoundRobin

ROUTERS: dict[str, Callable[[], Router]] = {"round_robin": RoundRobin}

__all__ = ["ROUTERS", "RoundRobin", "Routable", "Router"]
