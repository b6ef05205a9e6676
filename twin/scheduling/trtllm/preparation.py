"""Preparation of a step: blocks are given out and the plan is written."""

from twin.request import RequestState, Status
from twin.scheduling.base import PrefixCounters
from twin.scheduling.trtllm.active import ActiveRequest
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.limits import TrtllmLimits
from twin.scheduling.trtllm.micro_batch import MicroBatch
from twin.step import StepPlan


def prepare(
    batch: MicroBatch, plan: StepPlan, limits: TrtllmLimits, kv: KvCache, prefix: PrefixCounters
) -> int:
    """Give the batch its blocks and enter it into the plan; return who holds blocks newly.

    Order in the plan: chunks that do not end their prompt, those that do, then generations.
    """
    started = 0
    if batch.contexts:
        started = _prepare_contexts(batch, plan, limits, kv, prefix)
    _prepare_generations(batch.generations, plan, limits.tokens_per_block, kv)
    return started


def _prepare_contexts(
    batch: MicroBatch, plan: StepPlan, limits: TrtllmLimits, kv: KvCache, prefix: PrefixCounters
) -> int:
    """Enter contexts; the prefix found now may be shorter than the one they were charged for.

    Blocks given to one context may be those another was to reuse. What then exceeds the budget
    is cut from the later ones, as the source does.
    """
    left = limits.max_num_tokens - len(batch.generations)
    started = 0
    ending: list[tuple[RequestState, int]] = []
    readmitted: list[tuple[RequestState, int]] = []
    for request, chunk in batch.contexts:
        state = request.state
        if request.is_first_chunk:
            reused = _start(request, kv, prefix)
            started += 1
            (readmitted if state.preemptions else plan.admitted).append((state, reused))
            chunk = _beyond_reuse(chunk, reused, request.context_tokens, limits.tokens_per_block)
        tokens = min(chunk, left)
        if not tokens:
            continue
        left -= tokens
        state.num_computed += tokens
        plan.total_tokens += tokens
        ends = state.num_computed == request.context_tokens
        (ending if ends else plan.scheduled).append((state, tokens))
    plan.admitted += readmitted
    plan.scheduled += ending
    for state, _ in ending:
        state.placeholders = 1
        plan.samples.append(state)
    return started


def _beyond_reuse(chunk: int, reused: int, context_tokens: int, block_size: int) -> int:
    """Return the tokens of a first chunk that are left to compute.

    A chunk moves behind the reused prefix; where it does not reach the end of the prompt, it ends
    at the boundary of a block. (TensorRT-LLM, `LlmRequest::setPrepopulatedPromptLen`.)
    """
    if not reused:
        return chunk
    end = reused + chunk
    if end >= context_tokens:
        return context_tokens - reused
    return end - end % block_size - reused


def _start(request: ActiveRequest, kv: KvCache, prefix: PrefixCounters) -> int:
    """Give a context the blocks of its whole prompt; return the tokens it need not compute."""
    state, prompt = request.state, request.context_tokens
    reused = kv.admit(state, prompt)
    state.num_computed = reused
    state.status = Status.RUNNING
    if state.cached_tokens < 0:
        state.cached_tokens = reused
    if kv.tree is None:
        return reused
    if state.preemptions:
        prefix.preempted_requests += 1
        prefix.preempted_queries += prompt
        prefix.preempted_hits += reused
    else:
        prefix.requests += 1
        prefix.queries += prompt
        prefix.hits += reused
    return reused


def _prepare_generations(
    generations: list[ActiveRequest], plan: StepPlan, block_size: int, kv: KvCache
) -> None:
    """Enter generations; the KV sequence of each grows by a token, into a new block if need be."""
    enter, sample = plan.scheduled.append, plan.samples.append
    for request in generations:
        state = request.state
        computed = state.num_computed
        if not computed % block_size:
            kv.allocate(1, state.blocks)
        state.num_computed = computed + 1
        state.placeholders += 1
        enter((state, 1))
        sample(state)
    plan.total_tokens += len(generations)
