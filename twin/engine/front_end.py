"""The server process between the engine and the client: one token event after another.

TensorRT-LLM's server handles every response in one Python process (detokenising, building the
chunk, JSON), so token events queue; `stream_interval` makes fewer of them.
"""

from collections.abc import Sequence

from twin.errors import InputError


class FrontEnd:
    """A single server, first in first out, with a constant time per response.

    A response carries the tokens of a request since its last one. It is made for the first token,
    for every token whose number is a multiple of `stream_interval`, and for the last.
    (TensorRT-LLM, `stream_interval` on executor level.)

    Args:
        event_s: seconds a response costs.
        stream_interval: tokens between responses.

    Attributes:
        free_s: when the server has nothing left to do.

    Raises:
        InputError: a negative time or an interval below 1.
    """

    def __init__(self, event_s: float, stream_interval: int = 1) -> None:
        if not event_s >= 0:
            raise InputError(f"event_s is {event_s}", remedy="give seconds, 0 or more")
        if stream_interval < 1:
            raise InputError(f"stream_interval is {stream_interval}", remedy="give at least 1")
        self.event_s = event_s
        self.stream_interval = stream_interval
        self.free_s = 0.0

    def responds(self, number: int, *, last: bool) -> bool:
        """Whether token `number` of a request (from 1) causes a response."""
        return last or number == 1 or not number % self.stream_interval

    def seen_s(self, left_s: float, number: int, *, last: bool) -> float | None:
        """Return when the client sees a token; None: it comes with a later response.

        Call it for every token in the order in which they leave the engine.

        Args:
            left_s: when the token leaves the engine; never before that of an earlier call.
            number: of the token within its request, from 1.
            last: whether the request ends with it.
        """
        if not self.responds(number, last=last):
            return None
        self.free_s = max(self.free_s, left_s) + self.event_s
        return self.free_s

    def seen_times_s(self, tokens: Sequence[tuple[float, int, int, bool]]) -> list[float | None]:
        """Return when the client sees each token, those that share a response at its time.

        Args:
            tokens: (seconds it leaves the engine, request, number within it, last) in the order
                in which they leave.

        Returns:
            One time a token; None where the response that carries it is not among `tokens`.
        """
        times: list[float | None] = []
        held_back: dict[int, list[int]] = {}
        for place, (left_s, request, number, last) in enumerate(tokens):
            seen_s = self.seen_s(left_s, number, last=last)
            times.append(seen_s)
            if seen_s is None:
                held_back.setdefault(request, []).append(place)
            else:
                for earlier in held_back.pop(request, ()):
                    times[earlier] = seen_s
        return times
