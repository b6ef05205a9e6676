"""Prefill first (SGLang) where KV never runs short: sums instead of sequences."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.accuracy.closed_loop import Pass
from twin.step import BatchShape


@dataclass(frozen=True, slots=True)
class PrefillFirstLimits:
    """What SGLang decides by when memory is ample.

    Attributes:
        chunk_tokens: most prompt tokens of a batch.
        prefill_tokens: prompt tokens of a batch at which no further request joins.
        overlap: decide one step ahead.
    """

    chunk_tokens: int
    prefill_tokens: int
    overlap: bool


class PrefillFirstPolicy:
    """A batch is a prefill while anyone waits, else a decode of all.

    See `calibrate.accuracy.closed_loop.Policy`. Decodes are counted apart from decisions, since
    prefills come between them.

    Args:
        prompt_tokens, output_tokens: lengths by request.
        limits: the server's.
    """

    launches_empty = False

    def __init__(
        self, prompt_tokens: Sequence[int], output_tokens: Sequence[int], limits: PrefillFirstLimits
    ) -> None:
        self.queue_depth = 2 if limits.overlap else 1
        self.decisions = self.decoding = self.kv_tokens = 0
        self._prompt, self._output, self._limits = prompt_tokens, output_tokens, limits
        self._waiting: deque[int] = deque()
        self._partial: tuple[int, int] | None = None  # (request, tokens computed)
        self._joining: list[int] = []
        self._leaving: dict[int, list[int]] = {}
        self._decodes = self._unfinished = self._launched = 0
        self._settled = True

    def add(self, request: int) -> None:
        """See `Policy.add`."""
        self._waiting.append(request)
        self._unfinished += 1

    def has_unfinished(self) -> bool:
        """See `Policy.has_unfinished`."""
        return self._unfinished > 0

    def has_requests(self) -> bool:
        """As `has_unfinished`, or the loop has not had its idle turn since the last work."""
        return self._unfinished > 0 or not self._settled

    def quiet_until(self) -> int:
        """See `Policy`."""
        if self._waiting or self._partial or self._joining or not self.decoding:
            return 0
        return self.decisions + min(self._leaving) - self._decodes

    def skip(self, steps: int) -> None:
        """See `Policy.skip`."""
        self.decisions += steps
        self._decodes += steps
        self.kv_tokens += steps * self.decoding

    def decide(self) -> Pass:
        """See `Policy.decide`."""
        self.decisions += 1
        for request in self._joining:
            self.decoding += 1
            self.kv_tokens += self._prompt[request]
            last = self._decodes + self._output[request] - 1
            self._leaving.setdefault(last, []).append(request)
        self._joining.clear()
        decided = self._prefill() if self._waiting or self._partial else self._decode()
        if decided.shape is not None:
            self._launched += 1
            self._settled = False
        elif not self._launched and not self._unfinished:
            self._settled = True
        return decided

    def process(self, done: Pass) -> None:
        """See `Policy.process`."""
        self._launched -= 1
        self._unfinished -= len(done.lasts)

    def _prefill(self) -> Pass:
        chunk_left, input_left = self._limits.chunk_tokens, self._limits.prefill_tokens
        chunks: list[tuple[int, int]] = []
        firsts: list[int] = []
        while chunk_left > 0 and input_left > 0 and (self._partial or self._waiting):
            request, done = self._partial or (self._waiting.popleft(), 0)
            tokens = min(self._prompt[request] - done, chunk_left)
            chunk_left -= tokens
            input_left -= tokens
            chunks.append((tokens, done + tokens))
            self._partial = None
            if done + tokens == self._prompt[request]:
                firsts.append(request)
            else:
                self._partial = (request, done + tokens)
        self._joining += [request for request in firsts if self._output[request] > 1]
        single = [kv for tokens, kv in chunks if tokens == 1]
        prefill = tuple(chunk for chunk in chunks if chunk[0] > 1)
        shape = BatchShape(prefill, len(single), sum(single), 0, len(firsts))
        lasts = [request for request in firsts if self._output[request] == 1]
        return Pass(shape, len(chunks), firsts, lasts)

    def _decode(self) -> Pass:
        for request in self._leaving.pop(self._decodes, ()):
            self.decoding -= 1
            self.kv_tokens -= self._prompt[request] + self._output[request] - 1
        if not self.decoding:
            return Pass(None, 0)
        self._decodes += 1
        self.kv_tokens += self.decoding
        shape = BatchShape((), self.decoding, self.kv_tokens, 0, self.decoding)
        return Pass(shape, self.decoding, [], list(self._leaving.get(self._decodes, ())))
