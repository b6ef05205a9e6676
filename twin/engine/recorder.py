"""Collects what happens to requests into flat arrays; derives nothing."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from twin.engine.gap_log import GapLog, gap_log
from twin.engine.result import (
    FAILED,
    FINISHED,
    REJECTED,
    TIMED_OUT,
    UNFINISHED,
    Floats,
    Ints,
    RequestTable,
)
from twin.request import Request, RequestState


class RequestRecorder:
    """One slot a request, by `Request.index`.

    Args:
        stride: of the gaps between tokens one is kept of so many (`twin.engine.gap_log`).
    """

    def __init__(self, stride: int = 1) -> None:
        self._stride = stride
        self.requests: list[Request] = []
        self.scheduled_s: list[float] = []
        self.first_token_s: list[float] = []
        self.last_token_s: list[float] = []
        self.finish_s: list[float] = []
        self.output_tokens: list[int] = []
        self.states: list[RequestState | None] = []
        self.replica: list[int] = []
        self.outcome: list[int] = []
        self.requeues: list[int] = []
        self._gaps: dict[int, GapLog] = {}

    @property
    def itl_s(self) -> Floats:
        """Gaps between tokens, engine core by engine core, each in order of delivery."""
        logs = [self._gaps[core].gaps() for core in sorted(self._gaps)]
        return np.concatenate(logs) if logs else np.empty(0)

    def gaps_of(self, core: int) -> GapLog:
        """Return the log of an engine core."""
        log = self._gaps.get(core)
        if log is None:
            log = self._gaps[core] = gap_log(self._stride)
        return log

    def arrive(self, request: Request) -> None:
        """Open a slot; indices must come dense, but may come out of order of time."""
        for column, blank in self._columns():
            column.extend([blank] * (request.index + 1 - len(column)))
        self.requests.extend([request] * (request.index + 1 - len(self.requests)))
        self.requests[request.index] = request

    def arrive_all(self, requests: Sequence[Request]) -> None:
        """Open slots for many."""
        start = len(self.requests)
        if [request.index for request in requests] != list(range(start, start + len(requests))):
            for request in requests:
                self.arrive(request)
            return
        for column, blank in self._columns():
            column.extend([blank] * len(requests))
        self.requests.extend(requests)

    def _columns(self) -> Iterable[tuple[list, object]]:  # type: ignore[type-arg]
        nan = math.nan
        return (
            (self.scheduled_s, nan),
            (self.first_token_s, nan),
            (self.last_token_s, nan),
            (self.finish_s, nan),
            (self.output_tokens, 0),
            (self.states, None),
            (self.replica, -1),
            (self.outcome, UNFINISHED),
            (self.requeues, 0),
        )

    def submit(self, state: RequestState, replica: int) -> None:
        """The request joins a replica's queue."""
        index = state.request.index
        self.states[index] = state
        self.replica[index] = replica

    def reject(self, request: Request, replica: int, at_s: float) -> None:
        """The server refuses the request."""
        self.outcome[request.index] = REJECTED
        self.replica[request.index] = replica
        self.finish_s[request.index] = at_s

    def requeue(self, request: Request) -> None:
        """Its replica is lost: it begins anew elsewhere, as if nothing had been done for it."""
        index = request.index
        self.requeues[index] += 1
        for column in (self.scheduled_s, self.first_token_s, self.last_token_s):
            column[index] = math.nan
        self.output_tokens[index], self.states[index], self.replica[index] = 0, None, -1

    def fail(self, request: Request, at_s: float) -> None:
        """The request ends without the rest of its answer."""
        self.outcome[request.index] = FAILED
        self.finish_s[request.index] = at_s

    def time_out(self, request: Request, at_s: float) -> None:
        """Its client closes the connection."""
        self.outcome[request.index] = TIMED_OUT
        self.finish_s[request.index] = at_s

    def take_answer(self, request: Request, of: Request, came_s: float) -> None:
        """A request that came at `came_s` is answered with what another got, whole by now."""
        index, other = request.index, of.index
        self.first_token_s[index] = max(came_s, self.first_token_s[other])
        self.last_token_s[index] = self.finish_s[index] = max(came_s, self.last_token_s[other])
        self.output_tokens[index] = self.output_tokens[other]
        self.replica[index] = self.replica[other]
        self.outcome[index] = FINISHED

    def admit(self, states: Iterable[RequestState], at_s: float) -> None:
        """First scheduling; later ones (after a preemption) keep the first time."""
        scheduled_s = self.scheduled_s
        for state in states:
            index = state.request.index
            if math.isnan(scheduled_s[index]):
                scheduled_s[index] = at_s

    def deliver(self, states: Sequence[RequestState], at_s: float) -> None:
        """Each state, all of one engine core, gets one token."""
        if not states:
            return
        first, last, count = self.first_token_s, self.last_token_s, self.output_tokens
        gap = self.gaps_of(self.replica[states[0].request.index]).add
        for state in states:
            index = state.request.index
            if count[index]:
                gap(at_s - last[index])
            else:
                first[index] = at_s
            last[index] = at_s
            count[index] += 1

    def deliver_run(self, states: Sequence[RequestState], at_s: Floats) -> None:
        """Each state, all of one engine core, gets a token at each of these times."""
        steps, last_s, count = len(at_s), self.last_token_s, self.output_tokens
        log, first_s, end_s = self.gaps_of(self.replica[states[0].request.index]), *_ends(at_s)
        for state in states:
            index = state.request.index
            if count[index]:
                log.add(first_s - last_s[index])
            else:
                self.first_token_s[index] = first_s
            last_s[index] = end_s
            count[index] += steps
        log.add_run(at_s, len(states))

    def finish(self, states: Iterable[RequestState], at_s: float) -> None:
        """The states end; their last token came now."""
        for state in states:
            self.finish_s[state.request.index] = at_s
            self.outcome[state.request.index] = FINISHED

    def table(self) -> RequestTable:
        """Return the arrays."""
        requests = self.requests
        states = self.states
        return RequestTable(
            arrival_s=_floats([r.arrival_s for r in requests]),
            scheduled_s=_floats(self.scheduled_s),
            first_token_s=_floats(self.first_token_s),
            finish_s=_floats(self.finish_s),
            prompt_tokens=_ints([r.prompt_tokens for r in requests]),
            output_tokens=_ints(self.output_tokens),
            cached_tokens=_ints([max(0, s.cached_tokens) if s else 0 for s in states]),
            preemptions=_ints([s.preemptions if s else 0 for s in states]),
            requeues=_ints(self.requeues),
            replica=_ints(self.replica),
            outcome=_ints(self.outcome),
            session=_ints([r.session for r in requests]),
            turn=_ints([r.turn for r in requests]),
            priority=_ints([r.priority for r in requests]),
            name=tuple(r.name or f"request-{r.index}" for r in requests),
        )


def _ends(at_s: Floats) -> tuple[float, float]:
    return float(at_s[0]), float(at_s[-1])


def _floats(values: list[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)
