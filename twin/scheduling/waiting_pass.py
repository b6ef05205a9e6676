"""The waiting pass: who joins the running requests in this step."""

from twin.request import RequestState, Status
from twin.scheduling.core import EngineCore
from twin.step import StepPlan


def admit_waiting(core: EngineCore, plan: StepPlan, cap: int, budget: int) -> int:
    """Admit from the head of the queue while budget, places and blocks last; return the budget.

    The first request that does not fit stops the pass, so nobody overtakes it. Only one whose
    stale output is still in flight is passed over: it must not sample a position again that the
    output will fill. (vLLM 0.33.0, `Scheduler.schedule`.)
    """
    limits, waiting = core.limits, core.waiting
    readmitted: list[tuple[RequestState, int]] = []
    passed_over: list[RequestState] = []
    while budget > 0 and len(waiting) and len(core.running) < limits.max_num_seqs:
        state = waiting.head()
        if state.in_flight:
            passed_over.append(waiting.pop())
            continue
        hits = _look_up(core, state)
        missing = state.num_tokens - len(hits) * limits.block_size
        tokens = min(missing, cap)
        if tokens > budget and not limits.enable_chunked_prefill:
            break
        tokens = min(tokens, budget)
        new_blocks = _new_blocks(core, state, hits, tokens)
        if new_blocks is None:
            break
        waiting.pop()
        budget -= tokens
        admissions = readmitted if state.status is Status.PREEMPTED else plan.admitted
        admissions.append((state, len(hits) * limits.block_size))
        _admit(core, state, hits, new_blocks)
        _schedule(core, plan, state, tokens)
    plan.admitted += readmitted
    for state in reversed(passed_over):
        waiting.put_back(state)
    return budget


def head_stays_blocked(core: EngineCore, budget: int) -> bool:
    """Whether the head of the queue cannot join as long as the running requests only decode.

    Places do not come free then, and blocks only get fewer. A head with content may meanwhile
    find more of it in the cache: nobody knows without trying.
    """
    limits = core.limits
    if len(core.running) >= limits.max_num_seqs:
        return True
    state = core.waiting.head()
    if budget <= 0 or state.in_flight or (state.request.content and limits.enable_prefix_caching):
        return False
    missing = state.num_tokens
    if missing > budget and not limits.enable_chunked_prefill:
        return True
    threshold = limits.long_prefill_token_threshold
    tokens = min(missing, budget, threshold or missing)
    return _new_blocks(core, state, [], tokens) is None


def _look_up(core: EngineCore, state: RequestState) -> list[int]:
    """Return the cached blocks of a request; its last token is always computed."""
    most = (state.num_tokens - 1) // core.limits.block_size
    return core.pool.longest_hit(state.block_keys, most)


def _new_blocks(core: EngineCore, state: RequestState, hits: list[int], tokens: int) -> int | None:
    """Return how many blocks beyond the hits this step needs; None: the request must wait.

    Hits that nobody holds stand among the free blocks, so they use up free capacity; the
    watermark is kept free as long as anything runs, requests admitted just before included.
    """
    limits, pool = core.limits, core.pool
    block_size = limits.block_size
    available = pool.num_free - pool.count_unheld(hits)
    if core.running:
        available -= limits.watermark_blocks
    if limits.scheduler_reserve_full_isl:
        all_tokens = min(state.num_tokens, limits.max_model_len)
        if -(-all_tokens // block_size) - len(hits) > available:
            return None
    end = min(len(hits) * block_size + tokens, limits.max_model_len)
    needed = max(0, -(-end // block_size) - len(hits))
    return needed if needed <= available else None


def _admit(core: EngineCore, state: RequestState, hits: list[int], new_blocks: int) -> None:
    """Give a request its blocks and a place at the end of the running list."""
    pool, hit_tokens = core.pool, len(hits) * core.limits.block_size
    pool.hold(hits)
    state.blocks = hits
    pool.allocate(new_blocks, hits)
    state.num_cached_blocks = hit_tokens // core.limits.block_size
    state.num_computed = hit_tokens
    if state.cached_tokens < 0:
        state.cached_tokens = hit_tokens
    if core.limits.enable_prefix_caching:
        _count_look_up(core, state, hit_tokens)
    state.status = Status.RUNNING
    core.running.append(state)


def _count_look_up(core: EngineCore, state: RequestState, hit_tokens: int) -> None:
    """Count a look-up, once its request is admitted; those after a preemption stand apart."""
    prefix = core.prefix
    if state.preemptions:
        prefix.preempted_requests += 1
        prefix.preempted_queries += state.num_tokens
        prefix.preempted_hits += hit_tokens
    else:
        prefix.requests += 1
        prefix.queries += state.num_tokens
        prefix.hits += hit_tokens


def _schedule(core: EngineCore, plan: StepPlan, state: RequestState, tokens: int) -> None:
    """Enter an admitted request into the plan."""
    end = state.num_computed = state.num_computed + tokens
    plan.scheduled.append((state, tokens))
    if core.limits.enable_prefix_caching:
        core.cache_up_to(state, min(end, state.num_tokens))
    samples = end == state.num_tokens
    if samples:
        plan.samples.append(state)
    if core.limits.overlapping:
        state.in_flight += tokens
    if core.limits.async_scheduling:
        state.placeholders = int(samples)
        state.next_token_call = plan.index + core.limits.pipeline_stages
