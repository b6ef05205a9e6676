"""`Outcome`: a simulated candidate, as objectives and constraints read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from twin.engine.result import FINISHED, UNFINISHED, Floats, SimulationResult
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
        """Which requests got no answer, by any of their attempts: shape (requests counted,).

        Of one that the end of the run cut off nobody knows, if it has its first token or has not
        waited longer than the SLO allows: it does not count.
        """
        requests, limit_s = self.result.requests, self.scenario.file.slo.ttft_s
        waited_s = self.result.simulated_s - requests.arrival_s
        open_yet = np.isfinite(requests.first_token_s)
        if limit_s is not None:
            open_yet = open_yet | (waited_s <= limit_s)
        served = (requests.outcome == FINISHED) | ((requests.outcome == UNFINISHED) & open_yet)
        return ~self._any_attempt(served)[self._counted]

    def of_requests(self, name: str) -> Floats:
        """Return a latency of each counted request, seconds; NaN: it has none.

        A request that took several attempts waited from the first of them. One without an answer
        is taken to have waited to the end of the run, and no shorter than anybody else, so that
        to lose a request is never a gain.

        Args:
            name: `ttft_s` or `tpot_s`.
        """
        requests, counted = self.result.requests, self._counted
        values: Floats = getattr(self.latencies, name).copy()
        if name == "ttft_s":
            values += requests.arrival_s - requests.arrival_s[requests.origin]
        values[~np.isin(requests.outcome, (FINISHED, UNFINISHED))] = np.nan
        best = np.full(len(requests), np.nan)
        np.fmin.at(best, requests.origin, values)
        best = best[counted]
        known = best[np.isfinite(best)]
        worst_s = float(known.max()) if known.size else 0.0
        lost = self.unserved
        waited_s = self.result.simulated_s - requests.arrival_s[counted][lost]
        best[lost] = np.maximum(waited_s, worst_s)
        return best

    @property
    def _counted(self) -> Bools:
        """Which rows stand for a request that latencies count: its first attempt's."""
        first: Bools = self.result.requests.attempt == 1
        return first & measured(self.result)

    def _any_attempt(self, holds: Bools) -> Bools:
        """Return of each row whether something holds of any attempt of its request."""
        requests = self.result.requests
        found = np.zeros(len(requests), dtype=bool)
        found[requests.origin[holds]] = True
        return found[requests.origin]
