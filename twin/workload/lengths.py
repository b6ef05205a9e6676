"""How long prompts, answers and conversations are: distributions of whole numbers."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from twin.strict import Strict
from twin.workload.limits import MAX_TOKENS, Tokens
from twin.workload.trace import Trace

Ints = NDArray[np.int64]
MAX_SPREAD = 1e6
"""Largest std over mean of a lognormal; its square must stay a finite number."""
Positive = Annotated[float, Field(gt=0, le=MAX_TOKENS, allow_inf_nan=False)]


class FixedLength(Strict):
    """Always the same; a bare number in the input means this."""

    kind: Literal["fixed"]
    value: Tokens


class UniformLength(Strict):
    """Every whole number from low to high, both included, is as likely."""

    kind: Literal["uniform"]
    low: Tokens
    high: Tokens

    @model_validator(mode="after")
    def _ordered(self) -> "UniformLength":
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}; swap them")
        return self


class LognormalLength(Strict):
    """Lognormal, rounded and clipped to [min, max]; by mean and std, or by median and sigma.

    mean and std are those of the distribution before clipping; sigma is the standard deviation
    of its logarithm.
    """

    kind: Literal["lognormal"]
    mean: Positive | None = None
    std: Positive | None = None
    median: Positive | None = None
    sigma: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] | None = None
    min: Tokens = 1
    max: Tokens = MAX_TOKENS

    @model_validator(mode="after")
    def _one_pair(self) -> "LognormalLength":
        by_mean = (self.mean is not None, self.std is not None)
        by_median = (self.median is not None, self.sigma is not None)
        if {by_mean, by_median} != {(True, True), (False, False)}:
            raise ValueError("give mean and std, or median and sigma")
        if self.mean is not None and self.std is not None and self.std > MAX_SPREAD * self.mean:
            raise ValueError(f"std {self.std:g} is above {MAX_SPREAD:g} times mean {self.mean:g}")
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}; swap them")
        return self

    def log_parameters(self) -> tuple[float, float]:
        """Return mean and standard deviation of the logarithm."""
        if self.mean is not None and self.std is not None:
            variance = math.log1p((self.std / self.mean) ** 2)
            return math.log(self.mean) - variance / 2, math.sqrt(variance)
        return math.log(self.median or 1.0), self.sigma or 0.0


class EmpiricalLength(Strict):
    """Drawn, with replacement, from the requests of a trace file.

    Where prompts and answers are both drawn from one trace, they come from the same request.
    """

    kind: Literal["empirical"]
    path: Annotated[str, Field(min_length=1)] = Field(description="a trace file")
    format: str | None = Field(None, description="its format; default: judged by content")
    column: Literal["prompt_tokens", "output_tokens"] | None = Field(
        None, description="which lengths of the trace; default: those of the field this stands in"
    )


def _bare_number(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return {"kind": "fixed", "value": value}
    return value


Length = Annotated[
    Annotated[
        FixedLength | UniformLength | LognormalLength | EmpiricalLength,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_bare_number),
]
Count = Annotated[
    Annotated[FixedLength | UniformLength | LognormalLength, Field(discriminator="kind")],
    BeforeValidator(_bare_number),
]
Traces = Mapping[tuple[str, str | None], Trace]
"""Traces by (path, format) as written in the input."""


def mean_of(length: FixedLength | UniformLength | LognormalLength) -> float:
    """Return the mean, clipping left aside."""
    if isinstance(length, FixedLength):
        return length.value
    if isinstance(length, UniformLength):
        return (length.low + length.high) / 2
    mu, sigma = length.log_parameters()
    return min(max(math.exp(mu + sigma**2 / 2), length.min), length.max)


def draw(length: Length, count: int, rng: np.random.Generator) -> Ints:
    """Return `count` lengths of a distribution that needs no file."""
    if isinstance(length, FixedLength):
        return np.full(count, length.value, dtype=np.int64)
    if isinstance(length, UniformLength):
        return rng.integers(length.low, length.high, size=count, endpoint=True)
    if isinstance(length, LognormalLength):
        drawn = rng.lognormal(*length.log_parameters(), size=count)
        return np.rint(np.clip(drawn, length.min, length.max)).astype(np.int64)
    raise TypeError("an empirical length is drawn by draw_pairs")


def draw_pairs(
    lengths: tuple[Length, Length],
    count: int,
    rngs: tuple[np.random.Generator, np.random.Generator],
    traces: Traces,
) -> tuple[Ints, Ints]:
    """Return prompt and answer lengths, shape (count,) each.

    Both drawn from one trace, row by row, where both name it; else independently.
    """
    prompt, output = lengths
    prompt_rows = _rows(prompt, count, rngs[0], traces)
    joint = (
        isinstance(prompt, EmpiricalLength)
        and isinstance(output, EmpiricalLength)
        and (prompt.path, prompt.format) == (output.path, output.format)
    )
    output_rows = prompt_rows if joint else _rows(output, count, rngs[1], traces)
    return (
        _values(prompt, "prompt_tokens", count, (rngs[0], prompt_rows), traces),
        _values(output, "output_tokens", count, (rngs[1], output_rows), traces),
    )


def _rows(length: Length, count: int, rng: np.random.Generator, traces: Traces) -> Ints | None:
    if not isinstance(length, EmpiricalLength):
        return None
    return rng.integers(len(traces[length.path, length.format]), size=count)


def _values(
    length: Length,
    column: str,
    count: int,
    source: tuple[np.random.Generator, Ints | None],
    traces: Traces,
) -> Ints:
    rng, rows = source
    if not isinstance(length, EmpiricalLength):
        return draw(length, count, rng)
    trace = traces[length.path, length.format]
    wanted = length.column or column
    return (trace.prompt_tokens if wanted == "prompt_tokens" else trace.output_tokens)[rows]
