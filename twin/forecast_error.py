"""How far forecasts were off measurements, for a report to say beside its figures."""

import math
from dataclasses import dataclass

STANDS_IN = (
    "Errors of mean TTFT and mean TPOT alone were measured, on servers that were not saturated. Of "
    "percentiles, gaps between tokens (ITL), goodput, cost and energy none is known: where one is "
    "needed, that of mean TTFT stands in for every TTFT, that of mean TPOT for all others."
)
"""Whose error stands in for whose: said wherever a figure is judged by one."""

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


COMPARED_GPUS = ("h100_sxm", "h200_sxm")
"""GPUs of those rows; of others no serving run was held out."""


# The same rows in pairs of one deployment that differ in clients alone, at most fourfold: what the
# ratio of two forecasts is off the ratio of the two measurements. `python -m
# tests.audit.difference_errors` prints them; docs/accuracy.md has the table.
DIFFERENCE_ERRORS: dict[str, ForecastError] = {
    DENSE: ForecastError(
        ttft_median=0.068,
        ttft_p90=0.217,
        tpot_median=0.022,
        tpot_p90=0.069,
        rows=527,
        basis="pairs of loads of one deployment, dense networks on H100 and H200, held out",
    ),
    EXPERTS: ForecastError(
        ttft_median=0.070,
        ttft_p90=0.305,
        tpot_median=0.060,
        tpot_p90=0.253,
        rows=749,
        basis="pairs of loads of one deployment, networks with experts, H100 and H200, held out",
    ),
}


def forecast_error(*, experts: bool) -> ForecastError:
    """Return the error of forecasts for networks of a kind.

    Args:
        experts: whether the network is a mixture of experts.
    """
    return FORECAST_ERRORS[EXPERTS if experts else DENSE]


def difference_error(*, experts: bool, same_prices: bool) -> ForecastError:
    """Return the error of the ratio of two forecasts for one network and GPU.

    Args:
        experts: whether the network is a mixture of experts.
        same_prices: whether the same batch takes the same time on both sides: no other dtypes,
            ranks or CUDA graphs. Then most of the error is common to both, and measured pairs
            say what is left; else the two are taken as independent, sqrt(2) times one's error.
    """
    if same_prices:
        return DIFFERENCE_ERRORS[EXPERTS if experts else DENSE]
    one, both = forecast_error(experts=experts), math.sqrt(2)
    return ForecastError(
        ttft_median=both * one.ttft_median,
        ttft_p90=both * one.ttft_p90,
        tpot_median=both * one.tpot_median,
        tpot_p90=both * one.tpot_p90,
        rows=one.rows,
        basis=f"sqrt(2) times the error of one forecast: {one.basis}",
    )
