"""Errors of predicted step times, weighted by GPU time, and what they mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twin.validation import ErrorFigures, StratumErrors, ValidatedStep

Floats = NDArray[np.float64]

BAR_PCT = 5.0
"""Largest median absolute error, and largest bias, of a validated policy."""
MIN_STEPS = 8
"""Measured steps below which nothing is validated."""
_RESAMPLES = 2000
_LEVEL = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Figures and verdict; reasons are empty if it is validated."""

    overall: ErrorFigures
    median_interval_pct: tuple[float, float]
    bias_interval_pct: tuple[float, float]
    strata: tuple[StratumErrors, ...]
    reasons: tuple[str, ...]

    @property
    def validated(self) -> bool:
        """Whether every bar is kept."""
        return not self.reasons


def judge(steps: Sequence[ValidatedStep], shares: Mapping[str, float], seed: int) -> Judgement:
    """Judge measured steps.

    Args:
        steps: with weights that need not add up to 1 where some were dropped.
        shares: of the simulated GPU time, by stratum.
        seed: of the bootstrap, which draws steps by their weight: strata of one step would have
            no spread of their own.
    """
    weights = np.array([step.weight for step in steps])
    errors = 100 * np.array([step.predicted_s / step.measured_s - 1 for step in steps])
    weights /= weights.sum()
    overall = _figures(errors, weights)
    medians, biases = _resampled(errors, weights, seed)
    bias_interval = _interval(biases)
    names = [step.stratum for step in steps]
    strata = tuple(
        StratumErrors(name=name, share=shares[name], **_figures(errors[m], weights[m]).model_dump())
        for name in sorted(set(names), key=lambda name: -shares[name])
        for m in [np.array([other == name for other in names])]
    )
    return Judgement(
        overall, _interval(medians), bias_interval, strata, _reasons(overall, bias_interval, strata)
    )


def weighted_median(values: Floats, weights: Floats) -> float:
    """Return the least value that half of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, 0.5 * reached[-1] - 1e-12)])


def _figures(errors: Floats, weights: Floats) -> ErrorFigures:
    return ErrorFigures(
        steps=int(errors.size),
        median_pct=weighted_median(np.abs(errors), weights),
        bias_pct=float(np.average(errors, weights=weights)),
    )


def _resampled(errors: Floats, weights: Floats, seed: int) -> tuple[Floats, Floats]:
    """Medians of absolute errors, and means of signed ones, of steps drawn again."""
    random = np.random.default_rng(np.random.SeedSequence([seed, 6]))
    drawn = random.choice(errors, size=(_RESAMPLES, errors.size), p=weights)
    return np.median(np.abs(drawn), axis=1), drawn.mean(axis=1)


def _interval(values: Floats) -> tuple[float, float]:
    low, high = np.percentile(values, _LEVEL)
    return float(low), float(high)


def _reasons(
    overall: ErrorFigures, bias: tuple[float, float], strata: Sequence[StratumErrors]
) -> tuple[str, ...]:
    found = []
    if overall.steps < MIN_STEPS:
        found.append(f"{overall.steps} steps were measured, {MIN_STEPS} are needed")
    if overall.median_pct > BAR_PCT:
        found.append(f"median error {overall.median_pct:.1f} % is above {BAR_PCT:.0f} %")
    if bias[0] < -BAR_PCT or bias[1] > BAR_PCT:
        found.append(
            f"the bias may lie beyond {BAR_PCT:.0f} %: 95 % interval {bias[0]:+.1f} to "
            f"{bias[1]:+.1f} %"
        )
    if found:
        found += [
            f"{one.name} ({one.share:.0%} of GPU time) is off by {one.median_pct:.1f} %"
            for one in strata
            if one.median_pct > BAR_PCT
        ]
    return tuple(found)
