"""A closed loop on one replica, a step of decodes at the price of a few additions.

The reference engine touches every running sequence in every step. As long as nothing waits and
nothing ends, a step of decodes is `base + slope x KV` long and differs from the one before by
that alone; this module walks such stretches with scalars. It takes the same steps at the same
instants as `twin.engine.reference` (a test holds the two together bit by bit), for loads in which
KV blocks never run short and no prefix is shared.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Protocol

import numpy as np

from hwmodels.host import HostCosts
from twin.engine.replica import NOTHING_SCHEDULED_S
from twin.llm.step_time import StepTime
from twin.step import BatchShape


class Timer(Protocol):
    """As `twin.llm.step_time.StepTimer`."""

    def time(self, shape: BatchShape) -> StepTime:
        """Return the duration of one forward pass."""
        ...

    def decode_form(self, seqs: int, kv_tokens: int) -> tuple[float, float, int]:
        """Return (base_s, slope_s, last_kv) of decode-only steps from here on."""
        ...


@dataclass(slots=True)
class Pass:
    """One decision: the shape of its forward pass and what its output brings.

    Attributes:
        shape: None when it runs no tokens.
        seqs: sequences scheduled.
        firsts: requests whose first token it samples.
        lasts: requests whose last token it samples.
    """

    shape: BatchShape | None
    seqs: int
    firsts: list[int] = field(default_factory=list)
    lasts: list[int] = field(default_factory=list)


class Policy(Protocol):
    """A scheduler that keeps sums instead of sequences.

    `quiet_until`: number of the first decision that may differ from a step of `decoding`
    sequences more than in their KV, provided nothing arrives; 0: the next one may.
    """

    queue_depth: int
    launches_empty: bool
    decisions: int
    decoding: int
    kv_tokens: int

    def add(self, request: int) -> None:
        """Queue a request."""
        ...

    def decide(self) -> Pass:
        """Decide the next step."""
        ...

    def process(self, done: Pass) -> None:
        """Take note of a step's output."""
        ...

    def quiet_until(self) -> int:
        """See the class."""
        ...

    def skip(self, steps: int) -> None:
        """Take note of that many decode-only steps, decided and not to be told of."""
        ...

    def has_unfinished(self) -> bool:
        """Whether a request runs or waits."""
        ...

    def has_requests(self) -> bool:
        """As `has_unfinished`, or the worker has yet to hear of an end."""
        ...


@dataclass(frozen=True, slots=True)
class LoopTimes:
    """When each request was sent, got its first token and ended, seconds."""

    arrival_s: np.ndarray
    first_token_s: np.ndarray
    finish_s: np.ndarray
    output_tokens: np.ndarray
    front_end_share: float = 0.0
    """Share of the run in which the server's process handled tokens."""

    def without_first(self, requests: int) -> "LoopTimes":
        """Return the same without the first so many requests."""
        return LoopTimes(
            self.arrival_s[requests:],
            self.first_token_s[requests:],
            self.finish_s[requests:],
            self.output_tokens[requests:],
            self.front_end_share,
        )

    @property
    def ttft_s(self) -> float:
        """Mean time to the first token."""
        return float(np.mean(self.first_token_s - self.arrival_s))

    @property
    def tpot_s(self) -> float:
        """Mean over requests of the time per token after the first (NaN: none has a second)."""
        many = self.output_tokens > 1
        if not many.any():
            return math.nan
        spans = (self.finish_s - self.first_token_s)[many]
        return float(np.mean(spans / (self.output_tokens[many] - 1)))


class ClosedLoop:
    """`concurrency` clients against one replica.

    Args:
        policy: the engine's scheduler, fresh.
        timer: durations of forward passes.
        host: host costs.
        output_tokens: answer length of each request, in the order they are sent.
        concurrency: clients; all start at 0.
        turnaround_s: from an answer to the client's next request.

    With `front_end_event_s` the server's process handles the tokens of a step one after another:
    first tokens first, as contexts lead a batch; the place of last ones isn't known here and
    taken as the middle of the decodes.
    """

    def __init__(
        self,
        policy: Policy,
        timer: Timer,
        host: HostCosts,
        output_tokens: Sequence[int],
        concurrency: int,
        turnaround_s: float,
    ) -> None:
        self._policy, self._timer, self._host = policy, timer, host
        self._turnaround_s = turnaround_s
        count = len(output_tokens)
        self._output = output_tokens
        self._arrival_s, self._first_s, self._finish_s = ([math.nan] * count for _ in range(3))
        self._due: list[tuple[float, int]] = []
        self._sent = 0
        for _ in range(min(concurrency, count)):
            self._send(0.0)
        self._now = 0.0
        self._gpu_free_s = self._front_end_free_s = 0.0
        self._in_flight: deque[tuple[Pass, float, bool]] = deque()

    def run(self) -> LoopTimes:
        """Serve all requests."""
        policy, in_flight, due = self._policy, self._in_flight, self._due
        depth, empty_counts = policy.queue_depth, policy.launches_empty
        while True:
            if not in_flight and not policy.has_requests():
                if not due:
                    break
                self._now = max(self._now, due[0][0])
            self._drain()
            executed = False
            if policy.has_requests():
                self._stretch()
                self._drain()
                executed, launched_s = self._launch()
                room = len(in_flight) < depth
                self._now = launched_s
                if room and (executed or (empty_counts and policy.has_unfinished())):
                    continue
            if in_flight:
                self._finish_step(*in_flight.popleft())
            if not executed and policy.has_unfinished():
                self._now += NOTHING_SCHEDULED_S
        handled_s = sum(self._output) * self._host.front_end_event_s
        return LoopTimes(
            np.array(self._arrival_s),
            np.array(self._first_s),
            np.array(self._finish_s),
            np.array(self._output),
            handled_s / max(self._finish_s) if self._output else 0.0,
        )

    def _send(self, arrival_s: float) -> None:
        if self._sent < len(self._output):
            request, self._sent = self._sent, self._sent + 1
            self._arrival_s[request] = arrival_s
            heappush(self._due, (arrival_s + self._host.api_s, request))

    def _drain(self) -> None:
        due = self._due
        while due and due[0][0] <= self._now:
            self._policy.add(heappop(due)[1])

    def _launch(self) -> tuple[bool, float]:
        decided = self._policy.decide()
        launched_s = self._now + self._host.launch_s(decided.seqs)
        if decided.shape is None:
            if self._policy.launches_empty:
                self._in_flight.append((decided, launched_s, True))
            return False, launched_s
        seconds = self._timer.time(decided.shape).seconds
        self._gpu_free_s = max(launched_s, self._gpu_free_s) + seconds
        self._in_flight.append((decided, self._gpu_free_s, False))
        return True, launched_s

    def _finish_step(self, done: Pass, end_s: float, empty: bool) -> None:
        host = self._host
        self._now = now = host.out_s(self._now, end_s, done.seqs, empty=empty)
        self._policy.process(done)
        event_s = host.front_end_event_s
        if event_s and done.shape is not None:
            self._deliver_in_turn(done, now, event_s)
            return
        for request in done.firsts:
            self._first_s[request] = now
        for request in done.lasts:
            self._finish_s[request] = now
            self._send(now + self._turnaround_s)

    def _deliver_in_turn(self, done: Pass, now: float, event_s: float) -> None:
        tokens = done.shape.sampled_seqs if done.shape else 0
        free_s = max(self._front_end_free_s, now)
        for place, request in enumerate(done.firsts, start=1):
            self._first_s[request] = free_s + place * event_s
        middle = (tokens + len(done.firsts) + 1) / 2
        for request in done.lasts:
            seen_s = self._finish_s[request] = free_s + middle * event_s
            self._send(seen_s + self._turnaround_s)
        self._front_end_free_s = free_s + tokens * event_s

    def _stretch(self) -> None:
        """Walk through decode-only steps while nothing can change; queue and sums follow."""
        policy, in_flight = self._policy, self._in_flight
        most = policy.quiet_until() - 1 - policy.decisions
        if most <= 0 or len(in_flight) != policy.queue_depth - 1:
            return
        if any(done.firsts or done.lasts or empty for done, _, empty in in_flight):
            return
        due_s = self._due[0][0] if self._due else math.inf
        policy.skip(self._walk_ahead(most, due_s) if in_flight else self._walk(most, due_s))

    def _walk_ahead(self, most: int, due_s: float) -> int:
        """One step is in flight while the next is decided (queue depth 2); return the steps."""
        policy, host = self._policy, self._host
        seqs, kv = policy.decoding, policy.kv_tokens
        done, end_s, _ = self._in_flight[0]
        schedule_s = host.launch_s(seqs)
        update_s = host.process_s(done.seqs)
        later_update_s = host.process_s(seqs)
        wake_s, now, steps = host.wake_s, self._now, 0
        event_s, handled_s = host.front_end_event_s, self._front_end_free_s
        tokens = done.shape.sampled_seqs if done.shape else 0
        base_s, slope_s, last_kv = self._timer.decode_form(seqs, kv + seqs)
        while steps < most and now < due_s:
            kv += seqs
            if kv > last_kv:
                base_s, slope_s, last_kv = self._timer.decode_form(seqs, kv)
            launched_s = now + schedule_s
            seen_s = end_s + wake_s
            end_s = (launched_s if launched_s > end_s else end_s) + (base_s + slope_s * kv)
            now = (launched_s if launched_s > seen_s else seen_s) + update_s
            update_s = later_update_s
            if event_s:
                handled_s = (now if now > handled_s else handled_s) + tokens * event_s
                tokens = seqs
            steps += 1
        if steps:
            self._now, self._gpu_free_s = now, end_s
            self._front_end_free_s = handled_s
            decodes = BatchShape((), seqs, kv, 0, seqs)
            self._in_flight[0] = (Pass(decodes, seqs), end_s, False)
        return steps

    def _walk(self, most: int, due_s: float) -> int:
        """Nothing is in flight while a step is decided (queue depth 1); return the steps."""
        policy, host = self._policy, self._host
        seqs, kv = policy.decoding, policy.kv_tokens
        schedule_s = host.launch_s(seqs)
        update_s = host.process_s(seqs)
        now, end_s, steps = self._now, self._gpu_free_s, 0
        event_s, handled_s = host.front_end_event_s, self._front_end_free_s
        base_s, slope_s, last_kv = self._timer.decode_form(seqs, kv + seqs)
        while steps < most and now < due_s:
            kv += seqs
            if kv > last_kv:
                base_s, slope_s, last_kv = self._timer.decode_form(seqs, kv)
            launched_s = now + schedule_s
            end_s = (launched_s if launched_s > end_s else end_s) + (base_s + slope_s * kv)
            seen_s = end_s + host.wake_s
            now = (launched_s if launched_s > seen_s else seen_s) + update_s
            if event_s:
                handled_s = (now if now > handled_s else handled_s) + seqs * event_s
            steps += 1
        self._now, self._gpu_free_s, self._front_end_free_s = now, end_s, handled_s
        return steps
