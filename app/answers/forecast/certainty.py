"""How far forecasts of a setup are off, and when a difference between two means anything."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twin.forecast_error import (
    COMPARED_GPUS,
    ForecastError,
    difference_error,
    forecast_error,
)
from twin.scenario import Scenario
from twin.search.judging.error_of_difference import same_prices


@dataclass(frozen=True, slots=True)
class Certainty:
    """Held-out errors of forecasts like one.

    Attributes:
        ttft: P90 relative error of mean TTFT; None: no measurement says.
        tpot: of mean TPOT, which stands for all that follows from step times.
        rows: how many measurements.
        basis: which ones, or why none.
        experts: whether the network is a mixture of experts.
    """

    ttft: float | None
    tpot: float | None
    rows: int
    basis: str
    experts: bool

    def caption(self, what: str) -> str:
        """Return the words under a chart's band.

        Args:
            what: `ttft` or `tpot`.
        """
        error = self.ttft if what == "ttft" else self.tpot
        if error is None:
            return f"Error unknown: {self.basis}."
        name = "TTFT" if what == "ttft" else "TPOT"
        return (
            f"Band: P90 held-out error of mean {name}, ±{100 * error:.3g} %, n = {self.rows} "
            f"({self.basis}). Percentiles were not compared: it stands for theirs."
        )


def certainty_of(scenario: Scenario) -> Certainty:
    """Return how far forecasts of a scenario are off, by the accuracy report."""
    experts = scenario.arch.moe is not None
    unlike = sorted({gpu for gpu in _gpus(scenario) if gpu not in COMPARED_GPUS})
    if unlike:
        why = f"no serving run on {', '.join(unlike)} was held out"
        return Certainty(None, None, 0, why, experts)
    error = forecast_error(experts=experts)
    return Certainty(error.ttft_p90, error.tpot_p90, error.rows, error.basis, experts)


def _gpus(scenario: Scenario) -> list[str]:
    pools = scenario.pools
    return [pool.scenario.file.gpu for pool in pools] if pools else [scenario.file.gpu]


def error_between(
    one: Mapping[str, Any], other: Mapping[str, Any], *, experts: bool
) -> ForecastError:
    """Return the error of the ratio of two forecasts.

    Args:
        one, other: their `inputs`.
        experts: whether either network is a mixture of experts.
    """
    changed = differing_keys(one, other)
    alike = one.get("llm") == other.get("llm") and same_prices(changed)
    return difference_error(experts=experts, same_prices=alike)


def differing_keys(one: Mapping[str, Any], other: Mapping[str, Any], stem: str = "") -> list[str]:
    """Return the dotted keys in which two scenarios differ."""
    found: list[str] = []
    for key in sorted({*one, *other}):
        a, b = one.get(key), other.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differing_keys(a, b, f"{stem}{key}.")
        elif a != b:
            found.append(f"{stem}{key}")
    return found
