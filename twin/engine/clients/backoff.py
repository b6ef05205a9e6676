"""How long a client waits before its next attempt.

Jitter as in "Exponential Backoff And Jitter", M. Brooker, AWS Architecture Blog, 2015.
"""

from collections.abc import Callable

import numpy as np

from twin.workload.clients_spec import AdaptiveRetry, ExponentialRetry, FixedRetry

RetrySpec = FixedRetry | ExponentialRetry | AdaptiveRetry

Jitter = Callable[[float, np.random.Generator], float]
"""Spreads a delay."""


def _none(delay_s: float, rng: np.random.Generator) -> float:
    del rng
    return delay_s


def _full(delay_s: float, rng: np.random.Generator) -> float:
    return float(rng.uniform(0.0, delay_s))


def _equal(delay_s: float, rng: np.random.Generator) -> float:
    return delay_s / 2 + float(rng.uniform(0.0, delay_s / 2))


JITTERS: dict[str, Jitter] = {"none": _none, "full": _full, "equal": _equal}
"""By the name in a scenario; `decorrelated` depends on the last delay and stands apart."""


def delay_s(spec: RetrySpec, failed: int, last_s: float, rng: np.random.Generator) -> float:
    """Return the pause before the next attempt, seconds.

    Args:
        spec: the rule.
        failed: attempts that have failed.
        last_s: the pause before the last of them; 0 before the first.
        rng: where chance comes from.
    """
    if isinstance(spec, FixedRetry):
        return JITTERS[spec.jitter](spec.delay_s, rng)
    if spec.jitter == "decorrelated":
        widest_s = max(spec.delay_s, 3 * (last_s or spec.delay_s))
        return min(spec.max_delay_s, float(rng.uniform(spec.delay_s, widest_s)))
    grown_s = min(spec.max_delay_s, spec.delay_s * spec.factor ** (failed - 1))
    return JITTERS[spec.jitter](grown_s, rng)
