"""TensorRT-LLM's scheduler with a few requests, driven by hand as its executor drives it."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from twin.request import Request, RequestState, SegmentContent
from twin.scheduling.trtllm import TrtllmLimits, TrtllmScheduler
from twin.step import StepOutcome, StepPlan

DEFAULTS: dict[str, Any] = {
    "max_batch_size": 16,
    "max_num_tokens": 100,
    "max_seq_len": 400,
    "tokens_per_block": 10,
    "num_blocks": 1000,
    "enable_block_reuse": False,
    "overlap": False,
}


def limits(**changes: Any) -> TrtllmLimits:
    return TrtllmLimits(**{**DEFAULTS, **changes})


class Bench:
    """A scheduler whose requests are named by their index."""

    def __init__(self, **changes: Any) -> None:
        self.scheduler = TrtllmScheduler(limits(**changes))
        self.kv = self.scheduler.kv
        self.states: dict[int, RequestState] = {}
        self.in_flight: deque[StepPlan] = deque()
        self.outcomes: list[StepOutcome] = []

    def add(self, prompt: int, max_tokens: int = 50, **request: Any) -> RequestState:
        """Add a request; `shared=(id, tokens)` gives it a prefix others may have."""
        index = request.pop("index", len(self.states))
        shared = request.pop("shared", None)
        if shared is not None:
            segment, tokens = shared
            ids = (segment,) if tokens >= prompt else (segment, 1000 + index)
            request["content"] = SegmentContent(ids, (tokens, prompt)[: len(ids)])
        state = RequestState(
            Request(
                index=index,
                arrival_s=float(index),
                prompt_tokens=prompt,
                max_tokens=max_tokens,
                **request,
            )
        )
        self.states[index] = state
        self.scheduler.add(state)
        return state

    def schedule(self) -> StepPlan:
        """Decide a step; one that runs tokens is in flight from here on."""
        plan = self.scheduler.schedule()
        if plan.total_tokens:
            self.in_flight.append(plan)
        return plan

    def update(self) -> StepOutcome:
        outcome = self.scheduler.update(self.in_flight.popleft())
        self.outcomes.append(outcome)
        return outcome

    def step(self) -> StepPlan:
        """One iteration of the executor: decide, launch, process the oldest step if it is due."""
        plan = self.schedule()
        due = len(self.in_flight) == self.scheduler.queue_depth
        if self.in_flight and (due or not plan.total_tokens):
            self.update()
        return plan

    def steps(self, count: int) -> list[list[tuple[int, int]]]:
        return [chunks(self.step()) for _ in range(count)]


def chunks(plan: StepPlan) -> list[tuple[int, int]]:
    """What a plan schedules, by request index."""
    return [(state.request.index, tokens) for state, tokens in plan.scheduled]


def indices(states: list[RequestState]) -> list[int]:
    return [state.request.index for state in states]


@pytest.fixture
def bench() -> Callable[..., Bench]:
    return Bench


@pytest.fixture(name="chunks")
def _chunks() -> Callable[[StepPlan], list[tuple[int, int]]]:
    return chunks


@pytest.fixture(name="indices")
def _indices() -> Callable[[list[RequestState]], list[int]]:
    return indices


@pytest.fixture(name="limits")
def _limits() -> Callable[..., TrtllmLimits]:
    return limits
