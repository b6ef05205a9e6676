"""`Length`: how long a run was that figures are of."""

from dataclasses import dataclass

from twin.engine.result import SimulationResult


@dataclass(frozen=True, slots=True)
class Length:
    """How much traffic a run met, and how long it took.

    Attributes:
        requests: how many, attempts of one counted once.
        traffic_s: from the run's start to the last request's arrival, seconds.
        simulated_s: to the run's end: the last answer is out, or the horizon was reached.
    """

    requests: float
    traffic_s: float
    simulated_s: float


def length_of(result: SimulationResult) -> Length:
    """Return the length of a run."""
    first = result.requests.attempt == 1
    arrivals_s = result.requests.arrival_s[first]
    last_s = float(arrivals_s.max()) if arrivals_s.size else 0.0
    return Length(int(first.sum()), last_s, float(result.simulated_s))
