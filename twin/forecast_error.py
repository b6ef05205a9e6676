"""How far forecasts were off measurements, for a report to say beside its figures."""

from dataclasses import dataclass

DENSE = "dense"
EXPERTS = "experts"


@dataclass(frozen=True, slots=True)
class ForecastError:
    """Relative absolute errors of held-out serving measurements like a forecast.

    Attributes:
        ttft_median, ttft_p90: of mean time to first token.
        tpot_median, tpot_p90: of mean time per output token.
        rows: how many measurements.
        basis: which ones, for a reader.
    """

    ttft_median: float
    ttft_p90: float
    tpot_median: float
    tpot_p90: float
    rows: int
    basis: str


# Unsaturated rows of docs/accuracy.md, "Each group held out": H100 and H200 under vLLM, SGLang and
# TensorRT-LLM, the row's own group (GPU, engine, network) left out of the fit.
FORECAST_ERRORS: dict[str, ForecastError] = {
    DENSE: ForecastError(
        ttft_median=0.076,
        ttft_p90=0.215,
        tpot_median=0.040,
        tpot_p90=0.090,
        rows=449,
        basis="dense networks, closed-loop serving on H100 and H200, held out",
    ),
    EXPERTS: ForecastError(
        ttft_median=0.227,
        ttft_p90=0.503,
        tpot_median=0.096,
        tpot_p90=0.278,
        rows=343,
        basis="networks with experts, closed-loop serving on H100 and H200, held out",
    ),
}


def forecast_error(*, experts: bool) -> ForecastError:
    """Return the error of forecasts for networks of a kind.

    Args:
        experts: whether the network is a mixture of experts.
    """
    return FORECAST_ERRORS[EXPERTS if experts else DENSE]
