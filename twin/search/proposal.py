"""`propose`: a candidate, knob by knob, as a sampler suggests their values."""

from collections.abc import Callable, Mapping

from twin.search.candidates import value_in
from twin.search.domains import clean
from twin.search.knob import Candidate, Knob, Value
from twin.search.problem import SearchProblem


def propose(problem: SearchProblem, suggest: Callable[[Knob], Value]) -> Candidate:
    """Return a candidate; asks only for knobs that have an effect given those before.

    What stands at its default is left out, so that equal candidates look the same.

    Args:
        problem: what is searched.
        suggest: returns a value of a knob's domain.
    """
    candidate: dict[str, Value] = {}
    for knob in problem.knobs:
        if not has_effect(problem, candidate, knob):
            continue
        value = clean(knob, suggest(knob))
        default = value_at(problem, {}, knob.key)
        if value != default or isinstance(value, bool) != isinstance(default, bool):
            candidate[knob.key] = value
    return candidate


def has_effect(problem: SearchProblem, candidate: Candidate, knob: Knob) -> bool:
    """Whether what a knob needs holds in a candidate."""
    return all(value_at(problem, candidate, key) in allowed for key, allowed in knob.needs.items())


def value_at(problem: SearchProblem, candidate: Candidate, key: str) -> Value:
    """Return what a key stands at in a candidate, the engine's defaults filled in."""
    if key in candidate:
        return candidate[key]
    return problem.defaults.get(key, value_in(problem.file, key))


def suggested(problem: SearchProblem, candidate: Candidate) -> Mapping[str, Value]:
    """Return the values by key that `propose` would make a candidate of: its inverse."""
    return {
        knob.key: value_at(problem, candidate, knob.key)
        for knob in problem.knobs
        if has_effect(problem, candidate, knob)
    }
