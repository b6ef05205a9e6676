"""What one engine step runs, and what comes out of it."""

from dataclasses import dataclass, field

from twin.request import RequestState


@dataclass(slots=True)
class StepPlan:
    """The decision of one `schedule()` call.

    Attributes:
        index: number of the call, from 0.
        scheduled: (request, tokens) in the order the scheduler took them.
        total_tokens: sum of the scheduled tokens.
        admitted: (request, prefix-cache hit in tokens): first admissions, then readmitted ones.
        preempted: requests that lost their blocks in this call.
        finished_sent: finished requests the worker is told of with this plan.
        samples: the scheduled requests that will sample a token.
        epochs: `preemptions` of each scheduled request when scheduled, aligned with `scheduled`;
            a later preemption makes that part of the plan stale. Empty where a step is processed
            before the next is scheduled: nothing can be preempted in between.
    """

    index: int
    scheduled: list[tuple[RequestState, int]] = field(default_factory=list)
    total_tokens: int = 0
    admitted: list[tuple[RequestState, int]] = field(default_factory=list)
    preempted: list[RequestState] = field(default_factory=list)
    finished_sent: list[RequestState] = field(default_factory=list)
    samples: list[RequestState] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)


@dataclass(slots=True)
class StepOutcome:
    """What processing a step's output did.

    Attributes:
        delivered: requests that got one token, in order (stale ones included).
        stale: those of `delivered` whose request was preempted after the step was scheduled.
        discarded: requests whose token came after they had finished or been given up.
        finished: requests that ended now.
        finished_waiting: those of `finished` that ended while waiting (preempted).
    """

    delivered: list[RequestState] = field(default_factory=list)
    stale: list[RequestState] = field(default_factory=list)
    discarded: list[RequestState] = field(default_factory=list)
    finished: list[RequestState] = field(default_factory=list)
    finished_waiting: list[RequestState] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BatchShape:
    """The shape of one forward pass: all that its duration depends on.

    Attributes:
        prefill: (query tokens, KV tokens after the step) of each chunk longer than one token.
        decode_seqs: sequences that compute exactly one token.
        decode_kv_tokens: KV tokens they attend to, summed.
        decode_kv_max_tokens: the longest of them.
        sampled_seqs: sequences that need logits.
        decode_kv_min_tokens: the shortest of the decodes' KV; 0: not known, or no decode.
    """

    prefill: tuple[tuple[int, int], ...]
    decode_seqs: int
    decode_kv_tokens: int
    decode_kv_max_tokens: int
    sampled_seqs: int
    decode_kv_min_tokens: int = 0

    @property
    def num_tokens(self) -> int:
        """Tokens the dense layers see, before any CUDA-graph padding."""
        return self.decode_seqs + sum(query for query, _ in self.prefill)
