"""Who proposes candidates: one table, and one seed a trial."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import (
    BaseSampler,
    NSGAIIISampler,
    NSGAIISampler,
    RandomSampler,
    TPESampler,
)

_SMALLEST_POPULATION = 10
_LARGEST_POPULATION = 50
_GENERATIONS = 20
"""How many a genetic sampler should have. Of 200 trials, ten generations of 20 came out below
twenty of 10 and at times below random draws (tests/audit/test_search_samplers.py has the case)."""


@dataclass(frozen=True, slots=True)
class SamplerKind:
    """One row.

    Attributes:
        make: from a seed and a population size.
        genetic: it breeds generations of equal size. Its candidates are drawn with all knobs,
            those without an effect included: what all trials have can be inherited.
        about: how it searches, in a few words.
    """

    make: Callable[[int, int], BaseSampler]
    about: str
    genetic: bool = False


def _tpe(seed: int, population: int) -> BaseSampler:
    del population
    # Knobs that depend on others form groups of their own, which are modelled apart.
    return TPESampler(seed=seed, multivariate=True, group=True)


def _random(seed: int, population: int) -> BaseSampler:
    del population
    return RandomSampler(seed=seed)


SAMPLERS: dict[str, SamplerKind] = {
    "tpe": SamplerKind(_tpe, "models where good candidates lie (tree-structured Parzen estimator)"),
    "nsga2": SamplerKind(
        lambda seed, population: NSGAIISampler(seed=seed, population_size=population),
        "breeds a front of trade-offs (NSGA-II)",
        genetic=True,
    ),
    "nsga3": SamplerKind(
        lambda seed, population: NSGAIIISampler(seed=seed, population_size=population),
        "breeds a front spread by reference points (NSGA-III), for three objectives and more",
        genetic=True,
    ),
    "random": SamplerKind(_random, "draws evenly: the baseline"),
}
"""By name; what a search takes as `--sampler`."""


def sampler_for(name: str, seed: int, number: tuple[int, int], population: int) -> BaseSampler:
    """Return the sampler of one trial.

    Each trial has its own stream, so that one which was cut short is drawn again as it was.

    Args:
        name: in `SAMPLERS`.
        seed: of the study.
        number: of the trial, and how often it was drawn before.
        population: of a genetic sampler.
    """
    state = np.random.SeedSequence([seed, *number]).generate_state(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return SAMPLERS[name].make(int(state[0]), population)


def population_of(trials: int) -> int:
    """Return the size of a generation: a twentieth of the trials, from 10 to 50."""
    return min(max(trials // _GENERATIONS, _SMALLEST_POPULATION), _LARGEST_POPULATION)


def default_sampler(objectives: int) -> str:
    """Return the sampler for a number of objectives."""
    return "tpe" if objectives == 1 else "nsga2"
