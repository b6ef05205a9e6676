"""The running pass: requests that hold blocks are served first, in order of admission."""

from twin.request import RequestState, Status
from twin.scheduling.core import EngineCore
from twin.step import StepPlan


def schedule_running(core: EngineCore, plan: StepPlan, cap: int) -> int:
    """Give every running request its next tokens and return what is left of the budget.

    A request gets as many tokens as separate it from its last known or foreseen one, within
    `cap`, the budget and the context. Where blocks are short, others (or itself) are preempted.

    Under asynchronous scheduling a placeholder stands for a sampled token not known yet. A
    request whose tokens in flight reach `max_tokens` is left alone and keeps its place; a stop
    token is not foreseen. (vLLM 0.33.0, `Scheduler.schedule`.)

    In a pipeline of stages a request whose next token is still being computed is left alone too,
    while chunks of one prompt follow each other through the stages. Asynchronously it takes part
    in every `pipeline_stages`-th step at most, the pace at which sampled tokens come back to the
    first stage. Whenever that holds a request back it has a placeholder: the engine core processes
    a step only once the queue is full. (vLLM 0.33.0, `Request.next_decode_eligible_step`.)

    The loop runs once per running request and step, some hundred million times in a long
    simulation: hence local names, and one function.
    """
    limits, pool, running = core.limits, core.pool, core.running
    block_size, last_position = limits.block_size, limits.max_model_len - 1
    caching, asynchronous = limits.enable_prefix_caching, limits.async_scheduling
    overlapping, call = limits.overlapping, plan.index
    pace = limits.pipeline_stages if asynchronous and limits.pipeline_stages > 1 else 0
    fcfs = limits.scheduling_policy == "fcfs"
    take, sample = plan.scheduled.append, plan.samples.append
    budget = limits.max_num_batched_tokens
    index, count = 0, len(running)
    while index < count and budget > 0:
        state = running[index]
        index += 1
        request = state.request
        prompt = request.prompt_tokens
        computed = state.num_computed
        ahead = state.placeholders
        if ahead and (
            computed + 2 - ahead >= prompt + request.max_tokens
            or (pace and state.next_token_call > call)
        ):
            continue
        known = prompt + state.num_output
        end = goal = known + ahead
        if end > computed + 1:
            end = computed + min(end - computed, cap, budget)
        if end > last_position:
            end = last_position
        if end <= computed:
            continue
        blocks = state.blocks
        if len(blocks) * block_size < end:
            needed = -(-end // block_size) - len(blocks)
            if needed > pool.num_free:
                removed, returned = _make_room(core, plan, needed, state)
                index -= removed
                budget += returned
                count = len(running)
                if state.status is not Status.RUNNING:
                    if fcfs:
                        break
                    continue
            pool.allocate(needed, blocks)
        # A token not known yet has no content to be found by.
        if caching and (end if end < known else known) // block_size > state.num_cached_blocks:
            core.cache_up_to(state, min(end, known))
        state.num_computed = end
        tokens = end - computed
        budget -= tokens
        take((state, tokens))
        if asynchronous:
            state.in_flight += tokens
            if end == goal:
                state.placeholders = ahead + 1
                if pace:
                    state.next_token_call = call + pace
                sample(state)
        elif overlapping:
            state.in_flight += tokens
            if end == goal:
                sample(state)
        elif end == goal:
            sample(state)
    return budget


def _make_room(
    core: EngineCore, plan: StepPlan, needed: int, state: RequestState
) -> tuple[int, int]:
    """Preempt until `needed` blocks are free or `state` itself had to go.

    Returns:
        How many requests left `running` at or before the place of `state`, and the tokens that
        victims already scheduled in this step give back to its budget.
    """
    running, pool = core.running, core.pool
    priority = core.limits.scheduling_policy == "priority"
    removed = returned = 0
    while needed > pool.num_free:
        if priority:
            place = _least_urgent(running)
            removed += place <= running.index(state)
            victim = running.pop(place)
            returned += _undo(core, plan, victim)
        else:
            victim = running.pop()
        core.preempt(victim)
        plan.preempted.append(victim)
        if victim is state:
            break
    return removed, returned


def _least_urgent(running: list[RequestState]) -> int:
    """Return the place of the largest (priority, arrival); of equal ones the first."""

    def urgency(place: int) -> tuple[int, float]:
        state = running[place]
        return state.request.priority, state.arrival_s

    return max(range(len(running)), key=urgency)


def _undo(core: EngineCore, plan: StepPlan, victim: RequestState) -> int:
    """Take a victim out of the plan again; return the tokens it had been given."""
    for place, (state, tokens) in enumerate(plan.scheduled):
        if state is victim:
            del plan.scheduled[place]
            if victim in plan.samples:
                plan.samples.remove(victim)
            if core.limits.overlapping:
                # What never runs is not in flight, and so does not become stale.
                victim.in_flight -= tokens
            return tokens
    return 0
