"""What every scheduler of every engine offers to the engine loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from twin.request import RequestState
from twin.step import StepOutcome, StepPlan


@dataclass(slots=True)
class PrefixCounters:
    """Prefix-cache statistics in vLLM's sense (tokens; admissions of preempted ones apart)."""

    requests: int = 0
    queries: int = 0
    hits: int = 0
    preempted_requests: int = 0
    preempted_queries: int = 0
    preempted_hits: int = 0


class Scheduler(Protocol):
    """Decides what each step runs; knows no clock.

    `queue_depth` is how many steps may be in flight: one a pipeline stage, asynchronously one more.
    `launches_empty`: a decision without tokens takes a place in that queue (vLLM); otherwise it
    only lets the oldest step in flight be processed (SGLang, TensorRT-LLM).
    `prefix_key_tokens`: tokens that a key of the prefix cache stands for; 0: there is no cache.
    """

    queue_depth: int
    launches_empty: bool
    prefix: PrefixCounters
    prefix_key_tokens: int

    def add(self, state: RequestState) -> None:
        """Put a new request into the waiting queue."""
        ...

    def schedule(self) -> StepPlan:
        """Decide the next step."""
        ...

    def update(self, plan: StepPlan) -> StepOutcome:
        """Process the output of a step scheduled before; plans come back in order."""
        ...

    def abort(self, state: RequestState) -> bool:
        """The client gave a request up that was added before; return whether that changed anything.

        False: it had ended, or had been given up before. It ends as soon as the engine at hand
        would end it, with `finish_reason` "abort", and is in no `StepOutcome.finished`.
        """
        ...

    def reset(self) -> list[RequestState]:
        """Lose everything but the prefix counters, as a process that starts anew.

        Returns:
            The requests it held and nobody had given up: running ones in order, then waiting ones.
        """
        ...

    def has_unfinished(self) -> bool:
        """Whether any request is running or waiting."""
        ...

    def has_requests(self) -> bool:
        """As `has_unfinished`, or finished requests the worker has not been told of."""
        ...

    @property
    def num_running(self) -> int:
        """Requests in the running list."""
        ...

    @property
    def num_waiting(self) -> int:
        """Requests in the waiting queue."""
        ...

    @property
    def usable_blocks(self) -> int:
        """KV blocks requests can hold."""
        ...

    @property
    def free_blocks(self) -> int:
        """KV blocks that no request holds (cached ones included)."""
        ...

    def cached_prefix_keys(self, keys: Sequence[int]) -> int:
        """Return how many of these leading keys its cache holds; that counts as no use of it."""
        ...


class QuietScheduler(Scheduler, Protocol):
    """A scheduler that knows runs of decode steps ahead.

    A schedule call is quiet if it decodes all of `running` by a token, changes nothing else but
    the memory they take, and processing the oldest step in flight after it ends nobody. The steps
    in flight (`queue_depth - 1`) are decodes of the same requests.
    """

    @property
    def running(self) -> list[RequestState]:
        """The requests that decode, in order; to read, not to change."""
        ...

    def quiet_calls(self) -> int:
        """Return how many calls from now on are quiet at least; 0 where nobody knows."""
        ...

    def skip_calls(self, calls: int) -> list[int]:
        """Advance by that many quiet calls, each with the processing of the oldest step.

        Returns the KV blocks that each of them takes.
        """
        ...

    def blocks_taken(self, calls: int) -> int:
        """Return the KV blocks that so many quiet calls take, without taking them."""
        ...

    def cached_prefix_keys(self, keys: Sequence[int], calls: int = 0) -> int:
        """See `Scheduler.cached_prefix_keys`: what it would be after so many quiet calls."""
        ...
