"""`Outcome`: a simulated candidate, as objectives and constraints read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from twin.engine.result import FINISHED, Floats, SimulationResult
from twin.report.latencies import Bools, RequestLatencies, measured
from twin.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a candidate's run gave.

    Attributes:
        scenario: what was run.
        result: its arrays.
        latencies: of each request, seconds.
        figures: `twin.report.metrics.summarise` of it.
        usd_per_gpu_hour: price of a GPU; None: not given.
    """

    scenario: Scenario
    result: SimulationResult
    latencies: RequestLatencies
    figures: Mapping[str, Any]
    usd_per_gpu_hour: float | None = None

    @property
    def gpu_hours(self) -> float:
        """Hours of all GPUs of all replicas, idle or not."""
        gpu_s = self.result.gpu_s
        if gpu_s is None:
            raise ValueError("a simulated result knows its GPUs")
        return gpu_s / 3600

    @property
    def unserved(self) -> Bools:
        """Which rows, of those that latencies count, got no answer: shape (requests,)."""
        requests = self.result.requests
        answered = np.zeros(len(requests), dtype=bool)
        answered[requests.origin[requests.outcome == FINISHED]] = True
        lost: Bools = ~answered[requests.origin] & measured(self.result)
        return lost

    @property
    def counted_requests(self) -> int:
        """How many rows latencies count."""
        return int(measured(self.result).sum())

    def with_lost(self, name: str) -> Floats:
        """Return a latency of all counted requests, seconds.

        Those without an answer are taken to have waited to the end of the run, and no shorter
        than anybody else, so that to lose a request is never a gain.

        Args:
            name: of an attribute of `RequestLatencies`.
        """
        counted, lost = measured(self.result), self.unserved
        values: Floats = getattr(self.latencies, name).copy()
        known = values[counted & np.isfinite(values)]
        worst_s = float(known.max()) if known.size else 0.0
        waited_s = self.result.simulated_s - self.result.requests.arrival_s[lost]
        values[lost] = np.maximum(waited_s, worst_s)
        return values[counted]
