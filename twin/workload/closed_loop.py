"""A fixed number of clients, each with one request in flight."""

from collections.abc import Sequence

import numpy as np

from twin.request import Request
from twin.workload.columns import Floats, LengthColumns, length_columns, refuse_too_long
from twin.workload.lengths import Traces, draw_pairs
from twin.workload.spec import ClosedLoopWorkload, ThinkKind
from twin.workload.streams import Stream, generator


class ClosedLoopSource:
    """Sends the next request whenever one ends (see `twin.workload.source.RequestSource`).

    Lengths belong to the order in which requests are sent, so they do not depend on which one
    ends first. The first `warmup_requests` are to be left out of reports.
    """

    hears_of_ends = True

    def __init__(
        self, lengths: LengthColumns, think_s: Floats, concurrency: int, warmup_requests: int
    ) -> None:
        stop = lengths.stop_after
        self.prompt_tokens: list[int] = lengths.prompt_tokens.tolist()
        self.max_tokens: list[int] = lengths.max_tokens.tolist()
        self._stop = [None] * len(lengths) if stop is None else stop.tolist()
        self._think_s = think_s.tolist()
        self._concurrency = concurrency
        self._sent = 0
        self.warmup_requests = warmup_requests

    def start(self) -> Sequence[Request]:
        """Return one request a client, all at 0."""
        return [self._next(0.0) for _ in range(min(self._concurrency, self.expected_requests))]

    def on_end(self, request: Request, end_s: float, *, rejected: bool) -> Sequence[Request]:  # noqa: ARG002
        """Return the client's next request, one turnaround later."""
        if self._sent == self.expected_requests:
            return ()
        return (self._next(end_s + self._think_s[request.index]),)

    @property
    def expected_requests(self) -> int:
        """Number of requests, warm-up included."""
        return len(self.prompt_tokens)

    def _next(self, arrival_s: float) -> Request:
        index = self._sent
        self._sent += 1
        return Request(
            index,
            arrival_s,
            self.prompt_tokens[index],
            self.max_tokens[index],
            self._stop[index],
        )


def close_loop(
    spec: ClosedLoopWorkload, traces: Traces, seed: np.random.SeedSequence, max_model_len: int
) -> ClosedLoopSource:
    """Return the clients of a spec.

    Raises:
        InputError: a prompt is too long and the spec makes that an error.
    """
    count = spec.warmup_requests + spec.num_requests
    prompt, output = draw_pairs(
        (spec.prompt_tokens, spec.output_tokens),
        count,
        (generator(seed, Stream.PROMPTS), generator(seed, Stream.OUTPUTS)),
        traces,
    )
    lengths = length_columns(prompt, output, spec.finish, max_model_len)
    if spec.too_long == "error":
        refuse_too_long(lengths, max_model_len, "workload.prompt_tokens")
    think_s = think_times(spec.think, spec.think_time_s, count, generator(seed, Stream.THINKING))
    return ClosedLoopSource(lengths, think_s, spec.concurrency, spec.warmup_requests)


def think_times(kind: ThinkKind, mean_s: float, count: int, rng: np.random.Generator) -> Floats:
    """Return `count` pauses, seconds."""
    if kind == "fixed":
        return np.full(count, mean_s)
    return rng.exponential(mean_s, size=count)
