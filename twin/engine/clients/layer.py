"""The clients: between a workload and the loop that serves it.

Towards the loop they are the workload (`RequestSource`) and hear of ends (`Clients`). An attempt
is a request of its own, with an index of its own; the workload hears of an end once, at the last
attempt.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from twin.engine.clients.attempt import Ask, Attempt
from twin.engine.clients.retries import Retries
from twin.engine.clock import Clock
from twin.engine.reference import ReferenceEngine
from twin.engine.result import FINISHED, REJECTED, TIMED_OUT
from twin.request import Request
from twin.workload.clients_spec import ClientsSpec
from twin.workload.source import RequestSource


class ClientLayer:
    """Sends a workload's requests, loses patience, tries again.

    Call `join` before the run.

    Args:
        spec: how clients behave.
        source: the workload, spent by the run.
        clock: of this run.
        rng: where chance comes from.
    """

    def __init__(
        self, spec: ClientsSpec, source: RequestSource, clock: Clock, rng: np.random.Generator
    ) -> None:
        self._spec, self._source, self._clock = spec, source, clock
        self._retries = Retries(spec, rng)
        self._attempts: list[Attempt] = []

    hears_of_ends = True

    def join(self, loop: ReferenceEngine) -> None:
        """Stand between its workload, which is this one, and its servers."""
        self._loop = loop
        loop.clients = self

    def start(self) -> Sequence[Request]:
        """See `RequestSource.start`."""
        return [self._first_attempt(request) for request in self._source.start()]

    def on_end(self, request: Request, end_s: float, *, rejected: bool) -> Sequence[Request]:
        """See `RequestSource.on_end`: called at the last attempt."""
        asked = self._attempts[request.index].ask.request
        followers = self._source.on_end(asked, end_s, rejected=rejected)
        return [self._first_attempt(follower) for follower in followers]

    @property
    def expected_requests(self) -> int | None:
        """See `RequestSource.expected_requests`."""
        return self._source.expected_requests

    def _first_attempt(self, request: Request) -> Request:
        """Give a request of the workload a row; attempts before it may have taken its own."""
        row, ask = len(self._attempts), Ask(request)
        sent = request if request.index == row else replace(request, index=row)
        ask.serving = Attempt(sent, ask, row)
        self._attempts.append(ask.serving)
        return sent

    def expected(self, request: Request) -> None:
        """See `Clients.expected`."""
        attempt, spec = self._attempts[request.index], self._spec
        if spec.ttft_timeout_s is not None:
            at_s = request.arrival_s + spec.ttft_timeout_s
            look = partial(self._look_for_first_token, attempt)
            attempt.timers.append(self._clock.call_at(at_s, look))
        if spec.timeout_s is not None:
            at_s = request.arrival_s + spec.timeout_s
            attempt.timers.append(self._clock.call_at(at_s, partial(self._give_up, attempt)))

    def sends(self, request: Request) -> bool:
        """See `Clients.sends`: its client may be gone before the server has looked at it."""
        attempt = self._attempts[request.index]
        gone = attempt.gave_up and attempt.waiting is None
        if not gone or not self._spec.abort_on_disconnect:
            return True
        self._vanishes(attempt)
        return False

    def _vanishes(self, attempt: Attempt) -> None:
        """No server has anything to do for an attempt that nobody waits for."""
        attempt.left_s = self._clock.now
        self._leaves_server(attempt, TIMED_OUT)
        self._loop.close()

    def ended(self, request: Request, end_s: float, outcome: int) -> bool:
        """See `Clients.ended`."""
        attempt = self._attempts[request.index]
        attempt.left_s = end_s
        self._leaves_server(attempt, outcome)
        waiting, attempt.waiting = attempt.waiting, None
        if attempt.gave_up:
            self._loop.requests.time_out(request, attempt.gave_up_s)
            if waiting is not None:
                self._pass_on(waiting, attempt, outcome)
            return False
        if outcome == FINISHED:
            if self._comes_too_late(attempt, end_s):
                return False  # a timer will strike before the client sees it
            self._stop_timers(attempt)
            self._retries.succeeded(self._clock.now)
            return True
        self._stop_timers(attempt)
        return not self._tries_again(attempt, end_s, outcome)

    def columns(self) -> dict[str, Any]:
        """Return the columns of the request table that are about attempts."""
        attempts = self._attempts
        return {
            "attempt": np.array([a.number for a in attempts], dtype=np.int64),
            "origin": np.array([a.first for a in attempts], dtype=np.int64),
            "served_by": np.array([a.server_row for a in attempts], dtype=np.int64),
            "left_s": np.array([a.left_s for a in attempts], dtype=np.float64),
        }

    def _leaves_server(self, attempt: Attempt, outcome: int) -> None:
        ask = attempt.ask
        if ask.serving is attempt:
            ask.serving = None
            if outcome == FINISHED:
                ask.answer = attempt

    def _comes_too_late(self, attempt: Attempt, end_s: float) -> bool:
        """Whether the client loses patience before it sees an answer the server has begun to send.

        Only where tokens queue before the server's process does anybody know that beforehand.
        """
        spec, request = self._spec, attempt.request
        first_s = self._loop.requests.first_token_s[request.index]
        late = spec.timeout_s is not None and end_s >= request.arrival_s + spec.timeout_s
        first_late = spec.ttft_timeout_s is not None and (
            first_s >= request.arrival_s + spec.ttft_timeout_s
        )
        return late or first_late

    def _look_for_first_token(self, attempt: Attempt) -> None:
        if not self._loop.first_token_s(attempt.server_row) < self._clock.now:
            self._give_up(attempt)

    def _give_up(self, attempt: Attempt) -> None:
        now, loop = self._clock.now, self._loop
        attempt.gave_up_s = now
        self._stop_timers(attempt)
        loop.requests.time_out(attempt.request, now)
        has_left = self._disconnect(attempt)
        if not self._tries_again(attempt, now, TIMED_OUT):
            loop.conclude(attempt.request, now, TIMED_OUT)
        if has_left:
            loop.close()
        loop.dispatcher.send(())

    def _disconnect(self, attempt: Attempt) -> bool:
        """Close the connection; return whether the attempt leaves the servers by that."""
        if attempt.has_left:
            return False
        server = attempt.served_by
        if server is not None:
            server.waiting = None
        elif not (self._spec.abort_on_disconnect and self._loop.abort(attempt.request)):
            return False
        attempt.left_s = self._clock.now
        self._leaves_server(attempt, TIMED_OUT)
        return True

    def _tries_again(self, attempt: Attempt, end_s: float, outcome: int) -> bool:
        """Plan the next attempt, if there is one; return whether there is.

        What no server takes is too long, and would be refused again.
        """
        loop = self._loop
        if outcome == REJECTED and not loop.takes(attempt.request):
            return False
        send_s = self._retries.failed(attempt, end_s, self._clock.now)
        if send_s is None:
            return False
        name = attempt.request.name or f"request-{attempt.first}"
        row = len(self._attempts)
        request = replace(attempt.request, index=row, arrival_s=send_s, name=name)
        following = Attempt(request, attempt.ask, attempt.first, attempt.number + 1)
        self._attempts.append(following)
        loop.open(request)
        self._clock.call_at(send_s + loop.api_s, partial(self._arrive, following))
        return True

    def _arrive(self, attempt: Attempt) -> None:
        """A further attempt reaches the servers."""
        loop, ask = self._loop, attempt.ask
        if not self.sends(attempt.request):
            return
        if self._spec.idempotency == "key":
            if attempt.gave_up and (ask.serving is not None or ask.answer is not None):
                self._vanishes(attempt)
                return
            if ask.serving is not None:
                attempt.served_by, ask.serving.waiting = ask.serving, attempt
                return
            if ask.answer is not None:
                attempt.served_by = ask.answer
                self._pass_on(attempt, ask.answer, FINISHED)
                return
        ask.serving = attempt
        loop.dispatcher.send((attempt.request,))

    def _pass_on(self, attempt: Attempt, server: Attempt, outcome: int) -> None:
        """End an attempt as the one ended whose answer it has waited for."""
        loop = self._loop
        if outcome != FINISHED:
            loop.fail(attempt.request)
            return
        came_s = attempt.request.arrival_s + loop.api_s
        loop.requests.take_answer(attempt.request, server.request, came_s)
        loop.finish(attempt.request, max(came_s, server.left_s))

    def _stop_timers(self, attempt: Attempt) -> None:
        self._clock.withdraw(attempt.timers)
        attempt.timers.clear()
