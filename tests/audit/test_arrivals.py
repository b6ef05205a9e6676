"""Generated arrivals have the rate and the burstiness that were asked for, within chance."""

import numpy as np
import pytest

from twin.workload.arrivals import GammaArrivals, PoissonArrivals, arrival_times

pytestmark = pytest.mark.audit

SEEDS = range(20)
ARRIVALS = 20_000
RATE = 7.0
SIGMAS = 4.5
"""Of a normal figure, 7 in a million lie further out."""
PROCESSES = [
    (PoissonArrivals(kind="poisson", rate=RATE), 1.0),
    *(
        (GammaArrivals(kind="gamma", rate=RATE, burstiness=shape), shape)
        for shape in (0.25, 0.5, 1.0, 4.0)
    ),
]


def gaps_of(process, seed, count=ARRIVALS, duration_s=None):
    times = arrival_times(process, count, duration_s, np.random.default_rng(seed))
    return np.diff(times, prepend=0.0)


@pytest.mark.parametrize(("process", "shape"), PROCESSES)
def test_rate_and_burstiness(process, shape):
    gaps = np.stack([gaps_of(process, seed) for seed in SEEDS])
    # Gamma gaps: CV^2 = 1 / shape, excess kurtosis 6 / shape.
    variation = 1 / shape
    mean_error = (variation / gaps.size) ** 0.5
    assert abs(gaps.mean() * RATE - 1) < SIGMAS * mean_error

    # var of the sample variance, relative: (kurtosis - 1) / n = (2 + 6 / shape) / n.
    square = float(gaps.var()) / float(gaps.mean()) ** 2
    square_error = variation * ((2 + 6 / shape + 4 * variation) / gaps.size) ** 0.5
    assert abs(square - variation) < SIGMAS * square_error

    # Gaps do not depend on their neighbours.
    centred = gaps - gaps.mean()
    lag_1 = float((centred[:, 1:] * centred[:, :-1]).mean()) / float(gaps.var())
    assert abs(lag_1) < SIGMAS / gaps.size**0.5


@pytest.mark.parametrize("process", [PROCESSES[0][0], PROCESSES[3][0]])
def test_poisson_gaps_are_exponential(process):
    """Kolmogorov-Smirnov; 2.0 / sqrt(n) is passed by chance once in 1,500."""
    gaps = np.sort(gaps_of(process, 99))
    model = 1 - np.exp(-RATE * gaps)
    steps = np.arange(gaps.size + 1) / gaps.size
    distance = max((steps[1:] - model).max(), (model - steps[:-1]).max())
    assert distance < 2.0 / gaps.size**0.5


@pytest.mark.parametrize("process", [PROCESSES[0][0]])
def test_poisson_counts_vary_as_their_mean(process):
    """Variance over mean of counts in windows of 3 s is 1, within chance."""
    duration_s, window_s = 3000.0, 3.0
    ratios, totals = [], []
    for seed in SEEDS:
        times = arrival_times(process, None, duration_s, np.random.default_rng(seed))
        assert times.max() <= duration_s
        counts, _ = np.histogram(times, bins=int(duration_s / window_s), range=(0, duration_s))
        ratios.append(counts.var(ddof=1) / counts.mean())
        totals.append(times.size)
    windows = len(SEEDS) * duration_s / window_s
    assert abs(np.mean(ratios) - 1) < SIGMAS * (2 / windows) ** 0.5
    expected = RATE * duration_s
    assert abs(np.mean(totals) - expected) < SIGMAS * (expected / len(SEEDS)) ** 0.5


def test_seeds_give_different_arrivals():
    firsts = {float(gaps_of(PROCESSES[0][0], seed, count=1)[0]) for seed in range(1000)}
    assert len(firsts) == 1000
