"""What a search can be asked to make as large or as small as possible."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from twin.engine.result import FINISHED
from twin.report.latencies import percentile_of
from twin.report.metrics import good
from twin.report.slo import read_slo
from twin.search.energy import energy_j
from twin.search.outcome import Outcome

Direction = Literal["minimize", "maximize"]


@dataclass(frozen=True, slots=True)
class Objective:
    """One row.

    Attributes:
        name: how a command line asks for it.
        title: what it is, for a reader.
        unit: of its values.
        direction: which way is better.
        value: of a run; None: the run has no such thing.
        needs_slo: it counts by the scenario's service-level objective.
        needs_gaps: it reads gaps between tokens, so that they have to be recorded.
        needs_steps_of_pools: where there are several pools, it reads their steps.
        unpriced_unit: of its values where no price is given; empty: it has none.
    """

    name: str
    title: str
    unit: str
    direction: Direction
    value: Callable[[Outcome], float | None]
    needs_slo: bool = False
    needs_gaps: bool = False
    needs_steps_of_pools: bool = False
    unpriced_unit: str = ""

    def unit_at(self, usd_per_gpu_hour: float | None) -> str:
        """Return the unit of its values, given a price or none."""
        return self.unpriced_unit or self.unit if usd_per_gpu_hour is None else self.unit


def goodput_per_gpu_hour(outcome: Outcome) -> float | None:
    """Requests within the SLO, an hour of a GPU; all GPUs of all replicas count, idle or not."""
    slo = read_slo(outcome.scenario.file.slo)
    kept = good(outcome.result, outcome.latencies, slo)
    return float(kept.sum()) / outcome.gpu_hours if outcome.gpu_hours > 0 else None


def p99_ttft_s(outcome: Outcome) -> float | None:
    """99th percentile of the time to first token; who got none waited to the end."""
    return percentile_of(outcome.of_requests("ttft_s"), 99)


def p99_itl_s(outcome: Outcome) -> float | None:
    """99th percentile of the gaps between tokens of all answers."""
    value: float | None = outcome.figures["itl_s"]["p99"]
    return value


def usd_per_mtok(outcome: Outcome) -> float | None:
    """What GPUs cost, a million output tokens of finished answers."""
    millions = output_tokens(outcome) / 1e6
    price = 1.0 if outcome.usd_per_gpu_hour is None else outcome.usd_per_gpu_hour
    return outcome.gpu_hours * price / millions if millions > 0 else None


def joules_per_token(outcome: Outcome) -> float | None:
    """What GPUs take, an output token of a finished answer; an estimate (`twin.search.energy`).

    To nine digits: engines add busy seconds up in different orders, and a search must not depend
    on which of them ran.
    """
    tokens = output_tokens(outcome)
    if not tokens:
        return None
    return float(f"{energy_j(outcome.scenario, outcome.result) / tokens:.9g}")


def output_tokens(outcome: Outcome) -> int:
    """Return the output tokens of finished answers."""
    requests = outcome.result.requests
    return int(np.sum(requests.output_tokens[requests.outcome == FINISHED]))


OBJECTIVES: dict[str, Objective] = {
    row.name: row
    for row in (
        Objective(
            "goodput_per_gpu_hour",
            "goodput per GPU-hour",
            "requests/GPU-h",
            "maximize",
            goodput_per_gpu_hour,
            needs_slo=True,
        ),
        Objective("p99_ttft_s", "P99 time to first token", "s", "minimize", p99_ttft_s),
        Objective(
            "p99_itl_s", "P99 gap between tokens", "s", "minimize", p99_itl_s, needs_gaps=True
        ),
        Objective(
            "usd_per_mtok",
            "cost of a million output tokens",
            "USD/Mtok",
            "minimize",
            usd_per_mtok,
            unpriced_unit="GPU-h/Mtok",
        ),
        Objective(
            "joules_per_token",
            "GPU energy of an output token, estimated",
            "J/token",
            "minimize",
            joules_per_token,
            needs_steps_of_pools=True,
        ),
    )
}
"""By name; what a search takes as `--objective`."""
