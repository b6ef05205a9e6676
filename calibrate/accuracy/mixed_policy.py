"""Mixed batches (vLLM V1, TensorRT-LLM) where KV never runs short: sums instead of sequences."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from calibrate.accuracy.closed_loop import Pass
from twin.step import BatchShape


@dataclass(frozen=True, slots=True)
class MixedLimits:
    """What differs between the engines of this kind.

    Attributes:
        max_num_batched_tokens: budget of a step.
        max_num_seqs: most requests at once, those that end in a step not processed included.
        asynchronous: decide one step ahead.
        chunked: a prompt may be split over steps; else one that does not fit ends the pass.
        launches_empty: see `twin.scheduling.base.Scheduler`; so is who hears of ends.
        wait_iters, wait_tokens: TensorRT-LLM's batch wait: most iterations in which prompts are
            held back, and the tokens of a step from which they are not.
    """

    max_num_batched_tokens: int
    max_num_seqs: int
    asynchronous: bool
    chunked: bool = True
    launches_empty: bool = True
    wait_iters: int = 0
    wait_tokens: float = 0.0


class MixedPolicy:
    """Decodes first, prompts in order of arrival (see `calibrate.accuracy.closed_loop.Policy`).

    At most one prompt is computed in part: the last admitted one.

    Args:
        prompt_tokens, output_tokens: lengths by request.
        limits: the engine's.
    """

    def __init__(
        self, prompt_tokens: Sequence[int], output_tokens: Sequence[int], limits: MixedLimits
    ) -> None:
        self.queue_depth = 2 if limits.asynchronous else 1
        self.launches_empty = limits.launches_empty
        self.decisions = self.decoding = self.kv_tokens = 0
        self._prompt, self._output, self._limits = prompt_tokens, output_tokens, limits
        self._waiting: deque[int] = deque()
        self._partial: tuple[int, int] | None = None  # (request, tokens computed)
        self._joining: list[int] = []
        self._leaving: dict[int, list[int]] = {}
        self._unfinished = self._running = self._waited = 0
        self._unsent = False

    def add(self, request: int) -> None:
        """See `Policy.add`."""
        self._waiting.append(request)
        self._unfinished += 1

    def has_unfinished(self) -> bool:
        """See `Policy.has_unfinished`."""
        return self._unfinished > 0

    def has_requests(self) -> bool:
        """See `Policy.has_requests`."""
        return self._unsent or self._unfinished > 0

    def quiet_until(self) -> int:
        """See `Policy`."""
        if self._partial or self._joining or not self.decoding or self._unsent:
            return 0
        if self._waiting and self._running < self._limits.max_num_seqs:
            return 0
        return min(self._leaving)

    def skip(self, steps: int) -> None:
        """See `Policy.skip`."""
        self.decisions += steps
        self.kv_tokens += steps * self.decoding

    def decide(self) -> Pass:
        """See `Policy.decide`."""
        number = self.decisions
        self.decisions += 1
        self._unsent = False
        for request in self._leaving.pop(number, ()):
            self.decoding -= 1
            self.kv_tokens -= self._prompt[request] + self._output[request] - 1
        for request in self._joining:
            self.decoding += 1
            self.kv_tokens += self._prompt[request]
        self._joining.clear()
        self.kv_tokens += self.decoding
        lasts = self._leaving.get(number + 1, [])
        chunks, firsts = self._prefill(self._limits.max_num_batched_tokens - self.decoding)
        for request in firsts:
            self._start(request, number)
        instant = [request for request in firsts if self._output[request] == 1]
        return self._pass(chunks, firsts, [*lasts, *instant])

    def process(self, done: Pass) -> None:
        """See `Policy.process`."""
        if done.lasts:
            self._unfinished -= len(done.lasts)
            self._running -= len(done.lasts)
            self._unsent = self._limits.launches_empty

    def _prefill(self, budget: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Return chunks as (tokens, context after them), and whose prompts they complete."""
        chunks: list[tuple[int, int]] = []
        firsts: list[int] = []
        if self._limits.wait_iters and self._holds_back(budget):
            return chunks, firsts
        while budget > 0 and (self._partial or self._may_admit()):
            request, done = self._partial or (self._waiting[0], 0)
            tokens = self._prompt[request] - done
            if tokens > budget and not self._limits.chunked:
                break
            if not self._partial:
                self._waiting.popleft()
                self._running += 1
            tokens = min(tokens, budget)
            budget -= tokens
            chunks.append((tokens, done + tokens))
            self._partial = None
            if done + tokens == self._prompt[request]:
                firsts.append(request)
            else:
                self._partial = (request, done + tokens)
        return chunks, firsts

    def _may_admit(self) -> bool:
        return bool(self._waiting) and self._running < self._limits.max_num_seqs

    def _holds_back(self, budget: int) -> bool:
        """Whether the prompts that fit wait for more of them (they never do on an idle engine)."""
        if not self.decoding or not self._waiting:
            return False
        limits, tokens, left = self._limits, self.decoding, budget
        places = limits.max_num_seqs - self._running
        for request in islice(self._waiting, max(0, places)):
            if self._prompt[request] > left:
                break
            left -= self._prompt[request]
        if left == budget:
            return False
        tokens += budget - left
        if self._waited < limits.wait_iters and tokens < limits.wait_tokens:
            self._waited += 1
            return True
        self._waited = 0
        return False

    def _start(self, request: int, number: int) -> None:
        """The prompt is complete: decodes follow in every decision until the last token."""
        if self._output[request] > 1:
            self._joining.append(request)
            self._leaving.setdefault(number + self._output[request], []).append(request)

    def _pass(self, chunks: list[tuple[int, int]], firsts: list[int], lasts: list[int]) -> Pass:
        seqs = self.decoding + len(chunks)
        if not seqs:
            return Pass(None, 0)
        # A chunk of one token is computed like a decode.
        single = [kv for tokens, kv in chunks if tokens == 1]
        shape = BatchShape(
            tuple(chunk for chunk in chunks if chunk[0] > 1),
            self.decoding + len(single),
            self.kv_tokens + sum(single),
            0,
            self.decoding + len(firsts),
        )
        return Pass(shape, seqs, firsts, lasts)
