"""Bounds on what a workload may ask, so that a typing slip fails at once and in one line."""

from typing import Annotated

from pydantic import Field

MAX_REQUESTS = 10_000_000
"""Requests in one run."""
MAX_TOKENS = 10_000_000
"""Tokens of one prompt or answer: above any published context length."""
MAX_SECONDS = 1e8
"""Three years: longer than any trace or test."""
MAX_RATE = 1e6
"""Requests a second."""
MIN_RATE = 1e-6
MAX_TURNS = 1000

Tokens = Annotated[int, Field(gt=0, le=MAX_TOKENS)]
OptionalTokens = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
RequestCount = Annotated[int, Field(gt=0, le=MAX_REQUESTS)]
Rate = Annotated[float, Field(ge=MIN_RATE, le=MAX_RATE, allow_inf_nan=False)]
Duration = Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)]
Delay = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
