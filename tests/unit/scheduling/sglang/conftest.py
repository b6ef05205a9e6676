"""An SGLang scheduler with a few requests, driven by hand."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from twin.request import Request, RequestState, SegmentContent
from twin.scheduling.sglang import SglangLimits, SglangScheduler
from twin.scheduling.sglang.core import Launch
from twin.step import StepOutcome, StepPlan

DEFAULTS: dict[str, Any] = {
    "max_total_num_tokens": 1000,
    "context_length": 400,
    "max_running_requests": 16,
    "chunked_prefill_size": 100,
    "overlap": False,
}


class Engine:
    """A scheduler whose requests are named by their index, and SGLang's loop around it."""

    def __init__(self, **limits: Any) -> None:
        self.scheduler = SglangScheduler(SglangLimits(**{**DEFAULTS, **limits}))
        self.core = self.scheduler.core
        self.cache = self.core.cache
        self.states: dict[int, RequestState] = {}
        self.in_flight: deque[StepPlan] = deque()
        self.outcome: StepOutcome | None = None

    def add(self, prompt: int, max_tokens: int = 50, **request: Any) -> RequestState:
        """Add a request; `shared=(id, tokens)` gives it a prefix others may have."""
        index = request.pop("index", len(self.states))
        shared = request.pop("shared", None)
        if shared is not None:
            segment, tokens = shared
            ids = (segment,) if tokens >= prompt else (segment, 1000 + index)
            request["content"] = SegmentContent(ids, (tokens, prompt)[: len(ids)])
        fields = {"arrival_s": float(index), "name": str(index), **request}
        state = RequestState(
            Request(index=index, prompt_tokens=prompt, max_tokens=max_tokens, **fields)
        )
        self.states[index] = state
        self.scheduler.add(state)
        return state

    def turn(self) -> Launch | None:
        """One turn of the loop; return the batch it launched."""
        plan = self.scheduler.schedule()
        launch = self.core.launches[-1] if plan.total_tokens else None
        if launch is not None:
            self.in_flight.append(plan)
        self.outcome = None
        kept = self.scheduler.queue_depth - 1 if launch is not None else 0
        while len(self.in_flight) > kept:
            self.outcome = self.scheduler.update(self.in_flight.popleft())
        return launch

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.turn()

    def prefills(self, launch: Launch | None) -> list[tuple[int, int, int]]:
        """(request, tokens in KV before, tokens computed) of a batch."""
        rows = [] if launch is None else launch.prefill
        return [(job.state.request.index, old, new) for job, old, new in rows]

    def decodes(self, launch: Launch | None) -> list[int]:
        """Requests that decode in a batch."""
        return [] if launch is None else [job.state.request.index for job in launch.decode]

    @property
    def waiting(self) -> list[int]:
        return [job.state.request.index for job in self.core.waiting]

    @property
    def running(self) -> list[int]:
        return [job.state.request.index for job in self.core.running]


@pytest.fixture
def engine() -> Callable[..., Engine]:
    return Engine
