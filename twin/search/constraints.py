"""What a candidate has to keep once it was simulated: the SLO, and an answer for everybody."""

import numpy as np

from twin.report.slo import read_slo
from twin.search.outcome import Outcome

UNSERVED = "unserved"
WORST = 1e3
"""Largest violation told; beyond, more is not worse."""


def violations(outcome: Outcome) -> dict[str, float]:
    """Return by how much each constraint is missed, relative to its limit; at most 0: kept.

    `ttft_s`, `tpot_s`: the scenario's SLO at its percentile, where it sets a limit. Requests
    count, not attempts: one that tried again waited from its first attempt.
    `unserved`: the share of requests that got no answer (rejected, lost, given up or unfinished
    at the horizon), against the share that the percentile leaves over.
    """
    slo = read_slo(outcome.scenario.file.slo)
    found: dict[str, float] = {}
    for name in ("ttft_s", "tpot_s"):
        limit_s = getattr(slo, name)
        if limit_s is None:
            continue
        values = outcome.of_requests(name)
        known = values[np.isfinite(values)]
        if known.size:
            found[name] = min(float(np.percentile(known, slo.percentile)) / limit_s - 1, WORST)
    lost = outcome.unserved
    spare = 1 - slo.percentile / 100
    share = float(lost.mean()) if lost.size else 0.0
    found[UNSERVED] = min((share - spare) / spare, WORST) if spare > 0 else share
    return found
