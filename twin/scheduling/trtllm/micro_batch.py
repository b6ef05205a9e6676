"""The micro-batch scheduler: who of those that may hold memory runs in this step."""

from dataclasses import dataclass, field

from twin.scheduling.trtllm.active import ActiveRequest
from twin.scheduling.trtllm.chunking import CHUNKING, Prompt
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.limits import TrtllmLimits


@dataclass(slots=True)
class MicroBatch:
    """Who runs.

    Attributes:
        contexts: (request, prompt tokens) in the order they were met.
        generations: requests that compute one token each, in the order they were met.
        context_cost: tokens the contexts are charged with.
    """

    contexts: list[tuple[ActiveRequest, int]] = field(default_factory=list)
    generations: list[ActiveRequest] = field(default_factory=list)
    context_cost: int = 0


def micro_batch(taken: list[ActiveRequest], limits: TrtllmLimits, kv: KvCache) -> MicroBatch:
    """Walk the capacity scheduler's choice in its order and fill the step.

    Without chunking a prompt is charged whole, and one that does not fit ends the walk for all
    behind it. With chunking the contexts are set aside and divided afterwards; they count toward
    `max_batch_size` all the same. A request whose last token is in flight is passed over.
    """
    batch = MicroBatch()
    chunked = limits.enable_chunked_prefill
    left, places = limits.max_num_tokens, limits.max_batch_size
    generations, aside = batch.generations, []
    for request in taken:
        if not places:
            break
        state = request.state
        if state.num_computed >= request.context_tokens:
            ahead = state.placeholders
            if ahead and state.num_output + ahead >= request.foreseen_output:
                continue  # GENERATION_TO_COMPLETE
            if not left:
                break
            generations.append(request)
            left -= 1
        elif chunked:
            aside.append(request)
        else:
            prompt = _prompt(request, limits, kv)
            chunk, cost = prompt.remaining, prompt.cost(prompt.remaining)
            if cost > left:
                chunk = cost = _piece_of_a_recomputed_prompt(cost, left, limits)
            if not chunk:
                break
            batch.contexts.append((request, chunk))
            batch.context_cost += cost
            left -= cost
        places -= 1
    if aside:
        _divide(batch, aside, left, limits, kv)
    return batch


def _prompt(request: ActiveRequest, limits: TrtllmLimits, kv: KvCache) -> Prompt:
    remaining = request.remaining_context
    if not limits.charges_reuse or not request.is_first_chunk:
        return Prompt(remaining)
    hits = kv.matched(request.state, request.context_tokens)
    return Prompt(remaining, len(hits) * limits.tokens_per_block)


def _piece_of_a_recomputed_prompt(cost: int, left: int, limits: TrtllmLimits) -> int:
    """Return how much of a prompt too long for any step runs now; 0: it ends the walk.

    Only a paused request can have one: its answer has become part of its prompt. The source
    stops with an assertion there; we compute it piece by piece, so that the run goes on.
    """
    return left if cost > limits.max_num_tokens else 0


def _divide(
    batch: MicroBatch, aside: list[ActiveRequest], left: int, limits: TrtllmLimits, kv: KvCache
) -> None:
    """Give the contexts set aside their chunks; one without a token is not in this step."""
    prompts = [_prompt(request, limits, kv) for request in aside]
    chunks = [prompt.remaining for prompt in prompts]
    if sum(prompt.cost(prompt.remaining) for prompt in prompts) > left:
        divide = CHUNKING[limits.context_chunking_policy]
        chunks = divide(prompts, left, limits.chunk_unit_tokens)
    for request, prompt, chunk in zip(aside, prompts, chunks, strict=True):
        if chunk:
            batch.contexts.append((request, chunk))
            batch.context_cost += prompt.cost(chunk)
