"""`ClientsSpec`: what a scenario may say about those who send its requests."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from twin.strict import Strict
from twin.workload.limits import Delay, Duration

Attempts = Annotated[int, Field(ge=1, le=100)]


class NoRetry(Strict):
    """Whoever fails goes away."""

    kind: Literal["none"]


class FixedRetry(Strict):
    """Another attempt after the same delay each time."""

    kind: Literal["fixed"]
    max_attempts: Attempts = Field(3, description="the first one included")
    delay_s: Delay = Field(1.0, description="from the end of an attempt to the next")
    jitter: Literal["none", "full", "equal"] = Field(
        "none",
        description="full: anything up to the delay; equal: half the delay and anything up to "
        "the other half",
    )


class GrowingDelay(Strict):
    """What backoffs have in common whose delay grows with each attempt."""

    max_attempts: Attempts = Field(3, description="the first one included")
    delay_s: Delay = Field(1.0, description="before the second attempt")
    factor: Annotated[float, Field(ge=1, le=100, allow_inf_nan=False)] = Field(
        2.0, description="times the delay with each further attempt"
    )
    max_delay_s: Delay = Field(20.0, description="no delay is longer, before jitter")
    jitter: Literal["none", "full", "equal", "decorrelated"] = Field(
        "full",
        description="full, equal: as with fixed delays; decorrelated: anything from delay_s to "
        "three times the last delay",
    )


class ExponentialRetry(GrowingDelay):
    """Another attempt after a delay that grows with each."""

    kind: Literal["exponential"]


class AdaptiveRetry(GrowingDelay):
    """As exponential; besides, all clients together keep their retries to a rate they learn.

    The rate falls with every attempt that fails and rises with every one that succeeds, as in the
    adaptive mode of AWS's SDKs.
    """

    kind: Literal["adaptive"]


Retry = Annotated[
    NoRetry | FixedRetry | ExponentialRetry | AdaptiveRetry, Field(discriminator="kind")
]


class RetryBudget(Strict):
    """gRPC's retry throttling (gRFC A6): a count shared by all clients.

    It starts full, loses 1 with every attempt that fails and gains `token_ratio` with every one
    that succeeds; while it is not above half of `max_tokens`, nobody retries.
    """

    max_tokens: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 10.0
    token_ratio: Annotated[float, Field(gt=0, le=1e3, allow_inf_nan=False)] = 0.1


class ClientsSpec(Strict):
    """How long clients wait, and what they do when they have waited in vain."""

    timeout_s: Duration | None = Field(
        None, description="from sending an attempt to the end of its answer"
    )
    ttft_timeout_s: Duration | None = Field(
        None, description="from sending an attempt to its first token"
    )
    abort_on_disconnect: bool = Field(
        True,
        description="the server stops working on a request whose client has closed the connection",
    )
    retry: Retry = NoRetry(kind="none")
    budget: RetryBudget | None = Field(None, description="bounds the retries of all clients")
    idempotency: Literal["none", "key"] = Field(
        "none",
        description="key: a retry of a request that the server still works on, or has answered, "
        "gets that answer; none: it is served once more",
    )

    @model_validator(mode="after")
    def _first_token_comes_first(self) -> "ClientsSpec":
        whole_s, first_s = self.timeout_s, self.ttft_timeout_s
        if whole_s is not None and first_s is not None and first_s > whole_s:
            raise ValueError(
                f"ttft_timeout_s {first_s:g} is above timeout_s {whole_s:g}; leave it out or "
                "lower it"
            )
        return self
