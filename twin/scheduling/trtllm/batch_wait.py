"""Batch wait: contexts are held back so that several share a mixed step."""

from twin.scheduling.trtllm.limits import TrtllmLimits


class BatchWait:
    """Holds contexts back while the batch is small, for a limited number of iterations.

    It looks only at steps with contexts and generations, so an idle server does not wait. The
    counter is one for all contexts and keeps its value where no context is there: a context that
    joins a running count waits less. (TensorRT-LLM, `py_executor.py`.)

    Attributes:
        waited_iters: iterations waited since contexts were last released.
    """

    __slots__ = ("_min_tokens", "_timeout_iters", "waited_iters")

    def __init__(self, limits: TrtllmLimits) -> None:
        self._timeout_iters = limits.batch_wait_timeout_iters
        self._min_tokens = limits.batch_wait_max_tokens_ratio * limits.max_num_tokens
        self.waited_iters = 0

    @property
    def is_on(self) -> bool:
        """Whether it can ever hold anything back: both parameters must be set."""
        return self._timeout_iters > 0 and self._min_tokens > 0

    def holds_back(self, context_tokens: int, generation_tokens: int) -> bool:
        """Decide for a step that has both contexts and generations, and count."""
        tokens = context_tokens + generation_tokens
        if self.waited_iters < self._timeout_iters and tokens < self._min_tokens:
            self.waited_iters += 1
            return True
        self.waited_iters = 0
        return False
