"""`Typical`: the two steps that stand for a scenario's on the Hardware page."""

from dataclasses import dataclass

import numpy as np

from app.answers.forecast.sampled import first_of
from twin.errors import InputError
from twin.scenario import Scenario
from twin.step import BatchShape


@dataclass(frozen=True, slots=True)
class Typical:
    """A decode step and a prefill chunk.

    Attributes:
        decode_seqs: sequences that decode together: the forecast's mean of running requests.
        context_tokens: KV tokens of each: the mean over all decode steps of the requests.
        chunk_tokens: prompt tokens of the chunk: the median prompt, or the step's token budget.
    """

    decode_seqs: int
    context_tokens: int
    chunk_tokens: int

    @property
    def decode(self) -> BatchShape:
        """The decode step."""
        kv_tokens = self.decode_seqs * self.context_tokens
        return BatchShape((), self.decode_seqs, kv_tokens, self.context_tokens, self.decode_seqs)

    @property
    def prefill(self) -> BatchShape:
        """The chunk, of one request, without a cached prefix."""
        return BatchShape(((self.chunk_tokens, self.chunk_tokens),), 0, 0, 0, 1)


def typical_of(scenario: Scenario, running: float | None) -> Typical:
    """Return the typical steps of a scenario.

    Args:
        scenario: whose requests and limits.
        running: the forecast's mean of running requests; None: not known, then one.

    Raises:
        InputError: none of its requests is known from the start.
    """
    policy = scenario.policy
    seed = np.random.SeedSequence(scenario.file.seed)
    requests = first_of(scenario.workload).source(seed, policy.max_model_len).start()
    if not requests:
        raise InputError("no request is known at the start", where="workload")
    prompts = np.array([one.prompt_tokens for one in requests], dtype=np.float64)
    outputs = np.array([one.output_tokens for one in requests], dtype=np.float64)
    # Each token of an answer is a decode step of its request, over what came before it.
    context = float((outputs * (prompts + outputs / 2)).sum() / max(1.0, outputs.sum()))
    seqs = max(1, round(running or 1.0))
    budget = policy.max_num_batched_tokens or policy.max_model_len
    return Typical(
        decode_seqs=min(seqs, policy.max_num_seqs or seqs),
        context_tokens=max(1, min(round(context), policy.max_model_len)),
        chunk_tokens=max(1, min(round(float(np.median(prompts))), budget)),
    )
