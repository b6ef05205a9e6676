"""A scheduler with a few requests, driven by hand."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from twin.request import Request, RequestState, SegmentContent
from twin.scheduling import SchedulerLimits
from twin.scheduling.vllm_v1 import VllmV1Scheduler
from twin.step import StepOutcome, StepPlan

DEFAULTS: dict[str, Any] = {
    "max_num_seqs": 16,
    "max_num_batched_tokens": 100,
    "max_model_len": 400,
    "block_size": 10,
    "num_gpu_blocks": 1000,
    "enable_prefix_caching": False,
}


class Engine:
    """A scheduler whose requests are named by their index."""

    def __init__(self, **limits: Any) -> None:
        self.scheduler = VllmV1Scheduler(SchedulerLimits(**{**DEFAULTS, **limits}))
        self.core = self.scheduler.core
        self.pool = self.core.pool
        self.states: dict[int, RequestState] = {}
        self.in_flight: deque[StepPlan] = deque()

    def add(self, prompt: int, max_tokens: int = 50, **request: Any) -> RequestState:
        """Add a request; `shared=(id, tokens)` gives it a prefix others may have."""
        index = request.pop("index", len(self.states))
        shared = request.pop("shared", None)
        if shared is not None:
            segment, tokens = shared
            ids = (segment,) if tokens >= prompt else (segment, 1000 + index)
            request["content"] = SegmentContent(ids, (tokens, prompt)[: len(ids)])
        fields = {"arrival_s": float(index), **request}
        state = RequestState(
            Request(index=index, prompt_tokens=prompt, max_tokens=max_tokens, **fields)
        )
        self.states[index] = state
        self.scheduler.add(state)
        return state

    def schedule(self) -> StepPlan:
        """Schedule one step and leave it in flight."""
        plan = self.scheduler.schedule()
        self.in_flight.append(plan)
        return plan

    def update(self) -> StepOutcome:
        """Process the oldest step in flight."""
        return self.scheduler.update(self.in_flight.popleft())

    def step(self) -> StepPlan:
        """Schedule a step; process the oldest as soon as the queue is full."""
        plan = self.schedule()
        if len(self.in_flight) == self.scheduler.queue_depth:
            self.update()
        return plan


def chunks(plan: StepPlan) -> list[tuple[int, int]]:
    """What a plan schedules, by request index."""
    return [(state.request.index, tokens) for state, tokens in plan.scheduled]


def indices(states: list[RequestState]) -> list[int]:
    return [state.request.index for state in states]


@pytest.fixture
def engine() -> Callable[..., Engine]:
    return Engine


@pytest.fixture(name="chunks")
def _chunks() -> Callable[[StepPlan], list[tuple[int, int]]]:
    return chunks


@pytest.fixture(name="indices")
def _indices() -> Callable[[list[RequestState]], list[int]]:
    return indices
