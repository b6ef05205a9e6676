"""What a lazy core's requests have got so far, as its calls imply it."""

from twin.engine.lazy.core import Call, LazyCore
from twin.engine.lazy.handover import sampled_tokens
from twin.engine.recorder import RequestRecorder
from twin.engine.result import Floats


class Heard:
    """Writes tokens down as they leave the engine.

    Args:
        core: number of the engine core.
    """

    __slots__ = ("_call", "_core", "_seen_s")

    def __init__(self, core: int) -> None:
        self._core = core
        self._call = -1
        self._seen_s = 0.0

    def forget(self) -> None:
        """The engine starts anew."""
        self._call = -1

    def step(self, call: Call, now_s: float, requests: RequestRecorder) -> None:
        """Take the tokens of a step, without those who end with it."""
        taken = call.decodes - len(call.extra)
        if taken:
            requests.gaps_of(self._core).add_many(now_s - self._seen_s, taken)
        self._seen_s, self._call = now_s, call.number
        for job in call.firsts:
            requests.first_token_s[job.state.request.index] = now_s

    def run(self, seen_s: Floats, seqs: int, requests: RequestRecorder) -> None:
        """Take the tokens of decode steps after one just taken, of so many requests each.

        `seen_s`: when they left the engine, that one's first.
        """
        requests.gaps_of(self._core).add_run(seen_s, seqs)
        self._seen_s = float(seen_s[-1])
        self._call += len(seen_s) - 1

    def note(self, core: LazyCore, requests: RequestRecorder) -> None:
        """Write down how far the running requests have come."""
        for job in core.running.values():
            tokens = sampled_tokens(job, self._call)
            index = job.state.request.index
            requests.output_tokens[index] = tokens
            if tokens:
                requests.last_token_s[index] = self._seen_s
