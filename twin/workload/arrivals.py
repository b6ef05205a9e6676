"""When requests or sessions arrive: open-loop arrival processes."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from twin.errors import InputError
from twin.strict import Strict
from twin.workload.limits import MAX_RATE, MAX_REQUESTS, Duration, Rate

Floats = NDArray[np.float64]

# Spare draws so that one chunk nearly always reaches the end of a Poisson process.
_SPARE_SIGMAS = 6
_SPARE_DRAWS = 16


class ConstantArrivals(Strict):
    """Equal gaps."""

    kind: Literal["constant"]
    rate: Rate = Field(description="arrivals a second")


class PoissonArrivals(Strict):
    """Exponential gaps."""

    kind: Literal["poisson"]
    rate: Rate = Field(description="mean arrivals a second")


class GammaArrivals(Strict):
    """Gamma gaps as `vllm bench serve --burstiness` draws them: the shape is the burstiness.

    1 is a Poisson process, below 1 is burstier, above 1 more even.
    """

    kind: Literal["gamma"]
    rate: Rate = Field(description="mean arrivals a second")
    burstiness: Annotated[float, Field(ge=0.01, le=1e4, allow_inf_nan=False)] = Field(
        1.0, description="shape of the gaps' gamma distribution; below 1 is burstier than Poisson"
    )


class ArrivalStage(Strict):
    """One piece of a staged load."""

    rate: Annotated[float, Field(ge=0, le=MAX_RATE, allow_inf_nan=False)] = Field(
        description="arrivals a second; 0 is a pause"
    )
    duration_s: Duration
    arrivals: Literal["constant", "poisson"] = "poisson"


class StagedArrivals(Strict):
    """Stages one after another by the clock, whatever is still in flight."""

    kind: Literal["stages"]
    stages: Annotated[tuple[ArrivalStage, ...], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _some_arrive(self) -> "StagedArrivals":
        expected = sum(stage.rate * stage.duration_s for stage in self.stages)
        if expected < 1:
            raise ValueError("the stages bring less than one arrival; raise rate or duration_s")
        if expected > MAX_REQUESTS:
            raise ValueError(f"the stages bring {expected:.3g} arrivals; at most {MAX_REQUESTS:,}")
        return self


Arrivals = Annotated[
    ConstantArrivals | PoissonArrivals | GammaArrivals | StagedArrivals,
    Field(discriminator="kind"),
]


def check_extent(arrivals: Arrivals, count: int | None, duration_s: float | None) -> None:
    """Check that a process ends, and within bounds.

    Raises:
        ValueError: neither a count nor a duration ends it, or it would bring too many or none.
    """
    if isinstance(arrivals, StagedArrivals):
        if duration_s is not None:
            raise ValueError("stages have their own duration_s; leave out the common one")
        return
    if count is None and duration_s is None:
        raise ValueError("set how many arrive, duration_s, or both")
    if count is None and duration_s is not None:
        expected = arrivals.rate * duration_s
        if expected > MAX_REQUESTS:
            raise ValueError(
                f"rate {arrivals.rate:g} for {duration_s:g} s is {expected:.3g} arrivals; "
                f"at most {MAX_REQUESTS:,}"
            )


def arrival_times(
    arrivals: Arrivals, count: int | None, duration_s: float | None, rng: np.random.Generator
) -> Floats:
    """Return arrival times, seconds from the start; the first gap counts.

    Args:
        arrivals: the process.
        count: end after so many.
        duration_s: end at this time (included).
        rng: stream of random numbers.

    Raises:
        InputError: nothing arrives, or more than a run may hold.
    """
    if isinstance(arrivals, StagedArrivals):
        times_s = _staged(arrivals, rng)
    elif isinstance(arrivals, ConstantArrivals):
        times_s = _constant(arrivals.rate, count, duration_s)
    elif isinstance(arrivals, PoissonArrivals):
        times_s = _random(arrivals.rate, 1.0, count, duration_s, rng)
    else:
        times_s = _random(arrivals.rate, arrivals.burstiness, count, duration_s, rng)
    if count is not None:
        times_s = times_s[:count]
    if not times_s.size:
        raise InputError(
            "nothing arrives within the duration",
            where="workload.arrivals",
            remedy="raise rate or duration_s",
        )
    if times_s.size > MAX_REQUESTS:
        raise _too_many()
    return times_s


def _too_many() -> InputError:
    return InputError(
        f"more than {MAX_REQUESTS:,} arrivals",
        where="workload.arrivals",
        remedy="lower rate or duration_s",
    )


def _constant(rate: float, count: int | None, duration_s: float | None) -> Floats:
    within = np.inf if duration_s is None else whole_arrivals(rate, duration_s)
    number = int(min(within, MAX_REQUESTS if count is None else count))
    return np.arange(1, number + 1, dtype=np.float64) / rate


def whole_arrivals(rate: float, duration_s: float) -> int:
    """Return int(rate · duration), not one short for products like 0.1 · 30."""
    return int(rate * duration_s * (1 + 1e-12))


def _random(
    rate: float,
    shape: float,
    count: int | None,
    duration_s: float | None,
    rng: np.random.Generator,
) -> Floats:
    scale_s = 1.0 / (rate * shape)
    if duration_s is None:
        return np.cumsum(rng.gamma(shape, scale_s, size=count))
    expected = rate * duration_s
    sigma = (expected / shape) ** 0.5  # of the count of a renewal process, variance = mean · CV²
    wanted = expected + _SPARE_SIGMAS * sigma + _SPARE_DRAWS
    size = int(min(wanted, MAX_REQUESTS if count is None else count))
    times_s = np.cumsum(rng.gamma(shape, scale_s, size=size))
    while times_s[-1] <= duration_s and (count is None or times_s.size < count):
        if times_s.size >= MAX_REQUESTS:
            raise _too_many()
        more = rng.gamma(shape, scale_s, size=size)
        times_s = np.concatenate((times_s, times_s[-1] + np.cumsum(more)))
    return times_s[: np.searchsorted(times_s, duration_s, side="right")]


def _staged(arrivals: StagedArrivals, rng: np.random.Generator) -> Floats:
    parts, start_s = [np.empty(0)], 0.0
    for stage in arrivals.stages:
        if stage.rate > 0:
            if stage.arrivals == "constant":
                part = _constant(stage.rate, None, stage.duration_s)
            else:
                part = _random(stage.rate, 1.0, None, stage.duration_s, rng)
            parts.append(start_s + part)
        start_s += stage.duration_s
    return np.concatenate(parts)
