"""`WorkloadSpec`: what a scenario may say about its requests."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from twin.naming import remedy_for
from twin.strict import Strict
from twin.workload.arrivals import Arrivals, StagedArrivals, check_extent, whole_arrivals
from twin.workload.lengths import Count, EmpiricalLength, Length, UniformLength, mean_of
from twin.workload.limits import (
    MAX_REQUESTS,
    MAX_SECONDS,
    MAX_TURNS,
    Delay,
    Duration,
    OptionalTokens,
    Rate,
    RequestCount,
    Tokens,
)
from twin.workload.readers import READERS

MAX_POISSON_SECONDS = 604_800
"""A week: counts are drawn second by second."""

Finish = Literal["stop", "length"]
ThinkKind = Literal["fixed", "exponential"]
Priority = Annotated[int, Field(ge=-(2**31), le=2**31)]
Weight = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]


class AnyWorkload(Strict):
    """What every kind of workload may say."""

    too_long: Literal["reject", "error"] = Field(
        "reject",
        description="a request whose prompt and max_tokens exceed max_model_len: the server "
        "answers 400 and it is counted, or the run is refused where lengths are known beforehand",
    )


class TraceWorkload(AnyWorkload):
    """Recorded requests, replayed open loop."""

    kind: Literal["trace"]
    path: Annotated[str, Field(min_length=1)] = Field(description="trace file, plain or gzip")
    format: str | None = Field(None, description="its format; default: judged by content")
    window_s: tuple[Delay, Delay] | None = Field(
        None, description="keep arrivals in [start, end), seconds from the first request"
    )
    rate_scale: Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)] = Field(
        1.0, description="times the arrival rate: 2 halves every gap"
    )
    sample: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = Field(
        1.0, description="share of the requests to keep, chosen by the seed"
    )
    max_requests: RequestCount | None = Field(
        None, description="keep the first so many, after window and sample"
    )
    sort: bool = Field(False, description="order by time instead of refusing disorder")
    finish: Finish | None = Field(
        None,
        description="answers end by a stop token nobody foresees, or by max_tokens; default: as "
        "files of that format were recorded (production traces: stop; benchmarks: length)",
    )
    arrivals: Arrivals | None = Field(
        None, description="replace the file's times; default: keep them"
    )

    @field_validator("format")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        return _known_format(value)

    @model_validator(mode="after")
    def _consistent(self) -> "TraceWorkload":
        if self.window_s is not None and self.window_s[0] >= self.window_s[1]:
            raise ValueError(f"window_s {list(self.window_s)} is empty; give start < end")
        if self.arrivals is not None and self.rate_scale != 1:
            raise ValueError(
                "rate_scale scales the file's times, which arrivals replaces; drop one"
            )
        return self


class GeneratedWorkload(AnyWorkload):
    """What every made-up workload may say."""

    finish: Finish = Field(
        "length", description="answers end by max_tokens, or by a stop token nobody foresees"
    )


class PrefixGroups(Strict):
    """System prompts that requests share."""

    num_prefixes: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        description="different ones; each request draws one"
    )
    prefix_tokens: Tokens = Field(description="their length, put in front of prompt_tokens")


class SyntheticWorkload(GeneratedWorkload):
    """Independent requests, open loop."""

    kind: Literal["synthetic"]
    arrivals: Arrivals
    prompt_tokens: Length = Field(description="prompt length, without any shared prefix")
    output_tokens: Length = Field(description="answer length")
    num_requests: RequestCount | None = Field(None, description="end after so many")
    duration_s: Duration | None = Field(None, description="end at this time")
    priorities: Annotated[dict[Priority, Weight], Field(min_length=1, max_length=1000)] | None = (
        Field(None, description="weight by priority; smaller priorities are served first")
    )
    prefixes: PrefixGroups | None = Field(None, description="shared system prompts")

    @model_validator(mode="after")
    def _ends(self) -> "SyntheticWorkload":
        check_extent(self.arrivals, self.num_requests, self.duration_s)
        _check_formats(self.prompt_tokens, self.output_tokens)
        return self


class ClosedLoopWorkload(GeneratedWorkload):
    """A fixed number of clients, each sending its next request when the last one ended."""

    kind: Literal["closed_loop"]
    concurrency: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        description="requests in flight; all start at 0"
    )
    num_requests: RequestCount = Field(description="requests in all, warm-up apart")
    warmup_requests: Annotated[int, Field(ge=0, le=MAX_REQUESTS)] = Field(
        0, description="requests sent before those, to be left out of the report"
    )
    think_time_s: Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)] = Field(
        0.0, description="client's turnaround between an answer and its next request"
    )
    think: ThinkKind = Field("fixed", description="how the turnaround is distributed")
    prompt_tokens: Length = Field(description="prompt length")
    output_tokens: Length = Field(description="answer length")

    @model_validator(mode="after")
    def _bounded(self) -> "ClosedLoopWorkload":
        total = self.num_requests + self.warmup_requests
        if total > MAX_REQUESTS:
            raise ValueError(f"{total:,} requests with warm-up; at most {MAX_REQUESTS:,}")
        _check_formats(self.prompt_tokens, self.output_tokens)
        return self


class AfterAnswer(Strict):
    """The user reads the answer, thinks, and writes."""

    kind: Literal["after_answer"]
    think_time_s: Delay = Field(description="mean time from an answer to the next message")
    think: ThinkKind = "exponential"


class OpenLoopTurns(Strict):
    """Turns fall due by the clock; one that falls due before the last answer waits for it."""

    kind: Literal["open_loop"]
    interval_s: Delay = Field(description="mean time from one turn's due time to the next")
    interval: ThinkKind = "fixed"


class SessionWorkload(GeneratedWorkload):
    """Conversations whose context grows turn by turn.

    A turn that would not fit max_model_len starts the conversation anew with the system prompt.
    """

    kind: Literal["sessions"]
    arrivals: Arrivals = Field(description="arrivals of sessions")
    num_sessions: RequestCount | None = Field(None, description="end after so many sessions")
    duration_s: Duration | None = Field(None, description="no session starts after this time")
    turns: Count = Field(description=f"turns of a session, at most {MAX_TURNS}")
    num_groups: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        1, description="different system prompts; each session draws one"
    )
    system_prompt_tokens: OptionalTokens = Field(0, description="their length")
    message_tokens: Length = Field(description="length of a user's message")
    answer_tokens: Length = Field(description="length of an answer")
    next_turn: Annotated[AfterAnswer | OpenLoopTurns, Field(discriminator="kind")]

    @model_validator(mode="after")
    def _bounded(self) -> "SessionWorkload":
        check_extent(self.arrivals, self.num_sessions, self.duration_s)
        _check_formats(self.message_tokens, self.answer_tokens)
        turns = mean_of(self.turns)
        most = self.turns.high if isinstance(self.turns, UniformLength) else turns
        if most > MAX_TURNS:
            raise ValueError(f"{most:g} turns a session; at most {MAX_TURNS}")
        if self.num_sessions is not None and turns * self.num_sessions > MAX_REQUESTS:
            raise ValueError(
                f"{self.num_sessions:,} sessions of {turns:g} turns; at most {MAX_REQUESTS:,} "
                "requests in all"
            )
        return self


class LoadStage(Strict):
    """One stage: int(rate · duration_s) requests."""

    rate: Rate = Field(description="requests a second")
    duration_s: Duration

    @model_validator(mode="after")
    def _some_arrive(self) -> "LoadStage":
        if whole_arrivals(self.rate, self.duration_s) < 1:
            raise ValueError(
                f"rate {self.rate:g} for {self.duration_s:g} s brings no request; raise one"
            )
        return self

    @property
    def num_requests(self) -> int:
        """Requests of the stage."""
        return whole_arrivals(self.rate, self.duration_s)


class SharedPrefixWorkload(GeneratedWorkload):
    """inference-perf's `shared_prefix` load (github.com/kubernetes-sigs/inference-perf).

    `cycle` (multi-turn chat off): num_groups · prompts_per_group fixed prompts, shuffled once,
    are walked round and round; each stage starts again at the first. `grow` (multi-turn chat
    on): as many users, each with one request in flight; a user's context is the former prompt,
    its answer and the next question, without any cap, so past max_model_len every further
    request of that user is rejected. A stage starts when the former has drained.
    """

    kind: Literal["shared_prefix"]
    behaviour: Literal["cycle", "grow"]
    num_groups: Annotated[int, Field(gt=0, le=1_000_000)] = Field(description="system prompts")
    prompts_per_group: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        description="questions (cycle) or users (grow) of each system prompt"
    )
    system_prompt_tokens: OptionalTokens
    question_tokens: Length
    output_tokens: Length
    stages: Annotated[tuple[LoadStage, ...], Field(min_length=1, max_length=1000)]
    arrivals: Literal["exponential", "poisson_seconds", "constant"] = Field(
        "exponential",
        description="exponential: gaps rescaled to the stage's duration (inference-perf's "
        "`constant`); poisson_seconds: a Poisson count each second (its `poisson`); constant: "
        "equal gaps",
    )
    stage_gap_s: Delay = Field(1.0, description="pause after a stage has drained")

    @model_validator(mode="after")
    def _bounded(self) -> "SharedPrefixWorkload":
        total = sum(stage.num_requests for stage in self.stages)
        population = self.num_groups * self.prompts_per_group
        for what, number in (("requests", total), ("prompts", population)):
            if number > MAX_REQUESTS:
                raise ValueError(f"{number:,} {what}; at most {MAX_REQUESTS:,}")
        longest_s = max(stage.num_requests / stage.rate for stage in self.stages)
        if self.arrivals == "poisson_seconds" and longest_s > MAX_POISSON_SECONDS:
            raise ValueError(
                f"a stage of {longest_s:.3g} s is too long for poisson_seconds; use exponential"
            )
        _check_formats(self.question_tokens, self.output_tokens)
        return self


WorkloadSpec = Annotated[
    TraceWorkload | SyntheticWorkload | ClosedLoopWorkload | SessionWorkload | SharedPrefixWorkload,
    Field(discriminator="kind"),
]


def _known_format(name: str | None) -> str | None:
    if name is not None and name not in READERS:
        raise ValueError(f"unknown trace format {name!r}; {remedy_for(name, READERS)}")
    return name


def _check_formats(*lengths: Length) -> None:
    for length in lengths:
        if isinstance(length, EmpiricalLength):
            _known_format(length.format)


__all__ = [
    "AfterAnswer",
    "ClosedLoopWorkload",
    "LoadStage",
    "OpenLoopTurns",
    "PrefixGroups",
    "SessionWorkload",
    "SharedPrefixWorkload",
    "StagedArrivals",
    "SyntheticWorkload",
    "TraceWorkload",
    "WorkloadSpec",
]
