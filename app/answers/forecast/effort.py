"""How long a forecast is likely to take, to decide whether it may hold up a page."""

from pathlib import Path

import numpy as np

from app.answers.setup import Setup
from twin.engine.run import quickest_engine
from twin.scenario import Scenario

AT_ONCE_S = 0.8
"""What takes longer gets a process of its own (the design brief's limit)."""

GIVE_UP_S = 2.5
"""What holds up a page for so long after all is begun again in a process of its own."""

_LARGE_BYTES = 2_000_000
"""Of a trace: reading 34 MB takes some 7 s of one core."""
_MANY = 50_000
"""Requests that take long in any case; drawing those of a larger run would hold up a page."""

# Requests a second of one core, measured on chat-h100; long answers and many replicas take longer,
# which a server learns from the runs it makes (`Pace`).
_FIRST_GUESS = {"compiled": 5_000.0, "fast": 900.0}


class Pace:
    """Learns how many CPU seconds a request takes, scenario by scenario."""

    def __init__(self) -> None:
        self._seconds_a_request: dict[str, float] = {}
        self._slow: set[str] = set()

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

    def is_slow(self, digest: str) -> bool:
        """Whether a setup was given up once because it took too long."""
        return digest in self._slow

    def give_up(self, digest: str) -> None:
        """Remember a setup that takes longer than was thought."""
        self._slow.add(digest)

    def learn(self, key: str, requests: int, cpu_s: float) -> None:
        """Remember what so many requests took.

        The quickest run of a scenario counts: the first one of a process also loads code.
        """
        if requests:
            found = cpu_s / requests
            self._seconds_a_request[key] = min(found, self._seconds_a_request.get(key, found))


def is_large(setup: Setup) -> bool:
    """Whether reading what a visitor brought would hold up a page."""
    return sum(Path(path).stat().st_size for path in setup.private.values()) > _LARGE_BYTES


def expected_requests(scenario: Scenario) -> int | None:
    """Return how many requests a scenario will have; None: that depends on what happens.

    Where the file itself asks for very many, its word counts: they are not drawn for that.
    """
    asked = _asked(scenario.file.workload)
    if asked > _MANY:
        return asked
    seed = np.random.SeedSequence(scenario.file.seed)
    source = scenario.workload.source(seed, scenario.policy.max_model_len)
    return source.expected_requests


def _asked(workload: object) -> int:
    """Return the most that a workload's file names: requests, sessions, prompts; 0: it names none.

    A length of time counts at the rate of arrivals that goes with it.
    """
    counts = [getattr(workload, name, None) or 0 for name in ("num_requests", "num_sessions")]
    rate = getattr(getattr(workload, "arrivals", None), "rate", None)
    counts.append((rate or 0) * (getattr(workload, "duration_s", None) or 0))
    staged = getattr(getattr(workload, "arrivals", None), "stages", ())
    counts.append(sum(stage.rate * stage.duration_s for stage in staged))
    counts.append(sum(stage.num_requests for stage in getattr(workload, "stages", ())))
    groups, each = (getattr(workload, key, 0) for key in ("num_groups", "prompts_per_group"))
    counts.append(groups * each)
    return int(max(counts))
