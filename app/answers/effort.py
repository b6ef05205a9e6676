"""How long a forecast is likely to take, to decide whether it may hold up a page."""

import numpy as np

from twin.engine.run import quickest_engine
from twin.scenario import Scenario

AT_ONCE_S = 0.8
"""What takes longer gets a process of its own (the design brief's limit)."""

# Requests a second of one core, measured on chat-h100; long answers and many replicas take longer,
# which a server learns from the runs it makes (`Pace`).
_FIRST_GUESS = {"compiled": 5_000.0, "fast": 900.0}


class Pace:
    """Learns how many CPU seconds a request takes, scenario by scenario."""

    def __init__(self) -> None:
        self._seconds_a_request: dict[str, float] = {}

    def expected_s(self, key: str, requests: int | None) -> float:
        """Return the seconds of one core that so many requests are likely to take.

        Args:
            key: of the scenario that they are of.
            requests: how many; None: nobody knows, which counts as long.
        """
        if requests is None:
            return float("inf")
        guess = 1 / _FIRST_GUESS[quickest_engine()]
        return requests * self._seconds_a_request.get(key, guess)

    def learn(self, key: str, requests: int, cpu_s: float) -> None:
        """Remember what so many requests took.

        The quickest run of a scenario counts: the first one of a process also loads code.
        """
        if requests:
            found = cpu_s / requests
            self._seconds_a_request[key] = min(found, self._seconds_a_request.get(key, found))


def expected_requests(scenario: Scenario) -> int | None:
    """Return how many requests a scenario will have; None: that depends on what happens."""
    seed = np.random.SeedSequence(scenario.file.seed)
    source = scenario.workload.source(seed, scenario.policy.max_model_len)
    return source.expected_requests
