"""`PrefillBudget`: what one pass over the queue may still admit."""

from enum import Enum, auto

from twin.scheduling.sglang.core import SglangCore
from twin.scheduling.sglang.job import Job


class Verdict(Enum):
    """How a pass goes on."""

    GO_ON = auto()
    NO_MEMORY = auto()
    STOP = auto()


class PrefillBudget:
    """Memory that is promised, and prompt tokens that are left, in one pass.

    What is free and what could be evicted is asked anew each time: holding a prefix takes it
    from the evictable tokens at once. (SGLang 0.5.23, `PrefillAdder` and `mem_cache`'s
    `PrefillBudget`.)

    Attributes:
        input_left: prompt tokens until no further request joins.
        chunk_left: prompt tokens of the batch; None: prompts are not split.
        total_promised: tokens that running and admitted requests will take.
        current_promised: those that this batch takes.
    """

    __slots__ = (
        "_core",
        "_page",
        "chunk_left",
        "current_promised",
        "input_left",
        "total_promised",
    )

    def __init__(self, core: SglangCore) -> None:
        limits, running = core.limits, core.running
        self._core = core
        self._page = limits.page_size
        decodes = len(running) if limits.mixed else 0
        chunk = limits.chunked_prefill_size
        self.input_left = limits.max_prefill_tokens - decodes
        self.chunk_left = chunk - decodes if chunk > 0 else None
        self.current_promised = decodes
        self.total_promised = decodes + sum([promised(core, job) for job in running])

    @property
    def total_left(self) -> float:
        """Tokens that nobody has and nobody will need."""
        return self._core.cache.available - self.total_promised

    @property
    def current_left(self) -> int:
        """Tokens that nobody has and this batch does not need."""
        return self._core.cache.available - self.current_promised

    @property
    def verdict(self) -> Verdict:
        """Whether a further request may be tried."""
        if self.total_left <= 0 or self.current_left <= 0:
            return Verdict.NO_MEMORY
        if self.input_left <= 0 or (self.chunk_left is not None and self.chunk_left <= 0):
            return Verdict.STOP
        return Verdict.GO_ON

    def take(self, tokens: int, output: int) -> None:
        """Charge a request that computes `tokens` now and may generate `output`."""
        tokens = self._core.limits.ceil_page(tokens)
        self.current_promised += tokens + self._page
        self.total_promised += tokens + self._page + output
        self.input_left -= tokens
        if self.chunk_left is not None:
            self.chunk_left -= tokens


def promised(core: SglangCore, job: Job) -> float:
    """Return the output tokens reserved for a running request."""
    left = min(job.max_new - job.state.num_output, core.limits.clip_max_new_tokens_estimation)
    return left * (1.0 if job.ignore_eos else core.ratio.now)
