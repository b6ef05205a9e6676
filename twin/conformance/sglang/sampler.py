"""The recorder's sampler: which token of a request is its stop token."""

from dataclasses import replace

from twin.conformance.sglang.content import TokenContent
from twin.scheduling.sglang.core import Launch
from twin.scheduling.sglang.job import Job


class Sampler:
    """Counts what each request samples, and ends it at the EOS token as the engine did.

    A forward pass samples for every request in it, also at the end of a chunk, where nobody
    reads it: so the n-th sample may be an earlier output, and if it is lost the next one is EOS
    too. A sample that is dropped because its request was retracted does not count.

    Args:
        stops: from which sample on a request's tokens are EOS, from 1, by request id.
        key_tokens: tokens that a key of the prefix tree stands for.
    """

    def __init__(self, stops: dict[str, int], key_tokens: int) -> None:
        self._stops = stops
        self._key_tokens = key_tokens
        self._sampled: dict[str, int] = {}

    def reveal(self, launch: Launch) -> None:
        """Tell the scheduler, just before it processes a batch, whose token is EOS."""
        if not self._stops:
            return
        for job in launch.jobs:
            name = job.state.request.name
            if name not in self._stops or job.retracted or job.finished:
                continue
            count = self._sampled[name] = self._sampled.get(name, 0) + 1
            if count >= self._stops[name] and not job.middle_chunks:
                self._tell(job)

    def _tell(self, job: Job) -> None:
        state = job.state
        request, output = state.request, state.num_output + 1
        content = request.content
        if isinstance(content, TokenContent) and content.eos_from is None:
            content = replace(content, eos_from=output)
            if job.keys:
                tokens = job.prompt + max(1, job.max_new)
                job.keys = list(content.block_keys(self._key_tokens, tokens))
        state.request = replace(request, content=content)
        if not request.ignore_eos:
            state.request = replace(state.request, stop_after_tokens=output)
            state.output_limit = output
