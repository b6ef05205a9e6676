"""Tokens on their way from an engine to its clients through the one server process."""

from collections.abc import Callable

from twin.engine.front_end import FrontEnd
from twin.engine.recorder import RequestRecorder
from twin.request import Request, RequestState
from twin.step import StepOutcome


class DeliveryQueue:
    """Hands tokens to the recorder when the server has made a response of them.

    A response carries all tokens of its request since the last one; they are seen together, and
    the client hears of the end with the response that carries the last of them.

    Args:
        front_end: the server's process.
    """

    def __init__(self, front_end: FrontEnd) -> None:
        self._front_end = front_end
        self._held_back: dict[int, int] = {}

    def deliver(
        self,
        outcome: StepOutcome,
        left_s: float,
        requests: RequestRecorder,
        on_end: Callable[[Request, float], None],
    ) -> None:
        """Take what a step brought, in its order, and tell who ended when.

        Args:
            outcome: what leaves the engine at `left_s`.
            left_s: never before that of an earlier call.
            requests: the recorder.
            on_end: told of each request that ended, and of when its client saw that.
        """
        ended = {id(state) for state in outcome.finished}
        for state in outcome.delivered:
            self._token(state, left_s, requests, last=id(state) in ended)
        for state in outcome.finished:
            end_s = requests.last_token_s[state.request.index]
            requests.finish((state,), end_s)
            on_end(state.request, end_s)

    def reset(self) -> None:
        """The server's process starts anew; responses it has begun are still sent."""
        self._front_end.free_s = 0.0
        self._held_back.clear()

    def _token(
        self, state: RequestState, left_s: float, requests: RequestRecorder, *, last: bool
    ) -> None:
        index = state.request.index
        seen_s = self._front_end.seen_s(left_s, state.num_output, last=last)
        if seen_s is None:
            self._held_back[index] = self._held_back.get(index, 0) + 1
            return
        for _ in range(self._held_back.pop(index, 0) + 1):
            requests.deliver((state,), seen_s)
