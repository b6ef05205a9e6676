"""`Judged`: whether a run meets the SLO, and whether it would within the forecast's error."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from twin.engine.result import SimulationResult
from twin.forecast_error import ForecastError
from twin.report.metrics import slo_met
from twin.report.slo import Slo


@dataclass(frozen=True, slots=True)
class Judged:
    """What a run says of the SLO; None: there is none, or too little was served to tell.

    Attributes:
        met: as forecast.
        met_if_slower: also if TTFT and TPOT are longer by the forecast's error.
        met_if_faster: if they are shorter by it.
    """

    met: bool | None = None
    met_if_slower: bool | None = None
    met_if_faster: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def judge(result: SimulationResult, slo: Slo, error: ForecastError) -> Judged:
    """Judge a run.

    Args:
        result: what the run gave.
        slo: the limits.
        error: of the forecast; its 90th percentiles count. They are of mean latencies: nobody
            measured those of P99, which may be off further.
    """
    if not slo.asked:
        return Judged()
    return Judged(
        slo_met(result, slo),
        slo_met(result, _times(slo, 1 / (1 + error.ttft_p90), 1 / (1 + error.tpot_p90))),
        slo_met(result, _times(slo, 1 + error.ttft_p90, 1 + error.tpot_p90)),
    )


def _times(slo: Slo, ttft: float, tpot: float) -> Slo:
    return replace(
        slo,
        ttft_s=None if slo.ttft_s is None else slo.ttft_s * ttft,
        tpot_s=None if slo.tpot_s is None else slo.tpot_s * tpot,
    )
