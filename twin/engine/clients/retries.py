"""Whether and when a failed attempt is followed by another."""

import numpy as np

from twin.engine.clients.attempt import Attempt
from twin.engine.clients.backoff import delay_s
from twin.engine.clients.budget import Budget
from twin.engine.clients.rate_limiter import RateLimiter
from twin.workload.clients_spec import AdaptiveRetry, ClientsSpec, NoRetry


class Retries:
    """The decision of all clients; what binds them together is kept here.

    Args:
        spec: how they behave.
        rng: where chance comes from.
    """

    def __init__(self, spec: ClientsSpec, rng: np.random.Generator) -> None:
        self._spec = spec.retry
        self._budget = None if spec.budget is None else Budget(spec.budget)
        self._limiter = RateLimiter() if isinstance(spec.retry, AdaptiveRetry) else None
        self._rng = rng

    def succeeded(self, now_s: float) -> None:
        """An attempt succeeded."""
        if self._budget is not None:
            self._budget.succeeded()
        if self._limiter is not None:
            self._limiter.succeeded(now_s)

    def failed(self, attempt: Attempt, end_s: float, now_s: float) -> float | None:
        """An attempt failed at `end_s`; return when the next is sent, None: there is none."""
        if self._budget is not None:
            self._budget.failed()
        if self._limiter is not None:
            self._limiter.failed(now_s)
        spec = self._spec
        if isinstance(spec, NoRetry) or attempt.number >= spec.max_attempts:
            return None
        if self._budget is not None and not self._budget.allows:
            return None
        ask = attempt.ask
        ask.delay_s = delay_s(spec, attempt.number, ask.delay_s, self._rng)
        send_s = end_s + ask.delay_s
        return send_s if self._limiter is None else max(send_s, self._limiter.reserve(now_s))
