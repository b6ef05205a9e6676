"""From a sampler to a candidate, all of it drawn before any of it is written."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from twin.search.knob import Candidate, Choices, Knob, Powers, Span, Value
from twin.search.problem import SearchProblem
from twin.search.proposal import propose

_DIGITS = 10
"""Significant digits of a number between steps: 0.8 + 3 x 0.01 is 0.83."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A candidate, and what Optuna is told of it.

    Attributes:
        candidate: what to try.
        parameters: by name, value and distribution, in the order drawn.
        again: how often another one was drawn before, which was known already.
    """

    candidate: Candidate
    parameters: dict[str, tuple[Any, BaseDistribution]] = field(default_factory=dict)
    again: int = 0


def draw(
    problem: SearchProblem, study: optuna.Study, trial: FrozenTrial, *, everything: bool
) -> Drawing:
    """Return what a study's sampler proposes for a trial.

    Args:
        problem: what is searched; its first trials are its `starts`.
        study: with the sampler of this trial.
        trial: running; what an earlier attempt at it has written of its parameters is kept.
        everything: draw knobs without an effect as well.
    """
    suggest = _Suggestions(problem, study, trial)
    if everything:
        for knob in problem.knobs:
            suggest(knob)
    proposed = propose(problem, suggest)
    if trial.number < len(problem.starts):
        proposed = problem.starts[trial.number]
    return Drawing(proposed, suggest.parameters)


class _Suggestions:
    """Answers for one knob after the other; asked again, the same."""

    def __init__(self, problem: SearchProblem, study: optuna.Study, trial: FrozenTrial) -> None:
        self.parameters: dict[str, tuple[Any, BaseDistribution]] = {}
        self._study, self._trial = study, trial
        self._start: Candidate | None = None
        if trial.number < len(problem.starts):
            self._start = {**problem.defaults, **problem.starts[trial.number]}
        sampler = study.sampler
        sampler.before_trial(study, trial)
        # Of a start as well: it sets the generation that a genetic sampler counts it to.
        self._space = sampler.infer_relative_search_space(study, trial)
        self._together = sampler.sample_relative(study, trial, self._space)

    def __call__(self, knob: Knob) -> Value:
        parameter = parameter_of(knob)
        if parameter.name not in self.parameters:
            value = self._drawn(parameter)
            if parameter.name in self._trial.params:
                value = self._trial.params[parameter.name]
            if self._start is not None:
                value = parameter.nearest(self._start.get(knob.key))
            self.parameters[parameter.name] = (value, parameter.distribution)
        return parameter.decode(self.parameters[parameter.name][0])

    def _drawn(self, parameter: "Parameter") -> Any:
        name, distribution = parameter.name, parameter.distribution
        if name in self._together and self._space[name] == distribution:
            return self._together[name]
        return self._study.sampler.sample_independent(self._study, self._trial, name, distribution)


@dataclass(frozen=True, slots=True)
class Parameter:
    """How Optuna sees a knob.

    Attributes:
        name: its key; of a power of two `log2(key)`.
        distribution: what samplers draw from.
        decode: from what they draw to the knob's value.
        nearest: what they would draw for a value, or for the closest one in the domain.
    """

    name: str
    distribution: BaseDistribution
    decode: Callable[[Any], Value]
    nearest: Callable[[Value], Any]


def parameter_of(knob: Knob) -> Parameter:
    """Return how Optuna sees a knob."""
    domain = knob.domain
    if isinstance(domain, Choices):
        return _choice(knob.key, domain)
    if isinstance(domain, Powers):
        return _power(knob.key, domain)
    return _number(knob.key, domain)


def _choice(key: str, domain: Choices) -> Parameter:
    def nearest(value: Value) -> Any:
        return value if value in domain.values else domain.values[0]

    return Parameter(key, CategoricalDistribution(domain.values), lambda value: value, nearest)


def _power(key: str, domain: Powers) -> Parameter:
    low, high = domain.low.bit_length() - 1, domain.high.bit_length() - 1

    def nearest(value: Value) -> Any:
        if not isinstance(value, int | float) or value <= 0:
            return low
        return min(max(round(math.log2(value)), low), high)

    return Parameter(
        f"log2({key})", IntDistribution(low, high), lambda exponent: 2 ** int(exponent), nearest
    )


def _number(key: str, domain: Span) -> Parameter:
    whole = all(float(bound).is_integer() for bound in (domain.low, domain.high, domain.step))
    steps = int((domain.high - domain.low) / domain.step + 1e-9)
    high = _clean(domain.low + steps * domain.step)

    def decode(value: Any) -> Value:
        return int(value) if whole else _clean(value)

    def nearest(value: Value) -> Any:
        if not isinstance(value, int | float):
            return decode(domain.low)
        at = min(max(round((value - domain.low) / domain.step), 0), steps)
        return decode(domain.low + at * domain.step)

    distribution: BaseDistribution
    if whole:
        distribution = IntDistribution(int(domain.low), int(high), step=int(domain.step))
    else:
        distribution = FloatDistribution(domain.low, high, step=domain.step)
    return Parameter(key, distribution, decode, nearest)


def _clean(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
