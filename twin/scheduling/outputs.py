"""What processing a step's output does: tokens arrive, requests end, blocks come back."""

from twin.request import RequestState, Status
from twin.scheduling.core import EngineCore
from twin.step import StepOutcome, StepPlan


def process_in_order(core: EngineCore, plan: StepPlan) -> StepOutcome:
    """Process a step before the next is scheduled: every sampled token counts.

    Unless its request was aborted while the step ran.
    """
    ended: list[RequestState] = []
    late: list[RequestState] = []
    for state in plan.samples:
        output = state.num_output + 1
        if output > state.output_limit:
            late.append(state)
            continue
        state.num_output = output
        if output == state.output_limit:
            core.finish(state)
            ended.append(state)
    if ended:
        _drop_finished(core)
    delivered = [state for state in plan.samples if state not in late] if late else plan.samples
    return StepOutcome(delivered=delivered, discarded=late, finished=ended)


def process_late(core: EngineCore, plan: StepPlan) -> StepOutcome:
    """Process a step after others were scheduled: asynchronously, or in a pipeline of stages.

    Meanwhile a request may have ended (its extra token is discarded) or been preempted (its
    token is stale: delivered and appended, but it moves no counter and caches nothing; it can
    end the request while it waits). (vLLM 0.33.0, `Scheduler.update_from_output`.)
    """
    outcome = StepOutcome()
    asynchronous = core.limits.async_scheduling
    caching, block_size = core.limits.enable_prefix_caching, core.limits.block_size
    deliver = outcome.delivered.append
    # `samples` is a subsequence of `scheduled`; an unfinished prefill brings no token.
    samples = iter(plan.samples)
    upcoming = next(samples, None)
    for (state, tokens), epoch in zip(plan.scheduled, plan.epochs, strict=True):
        state.in_flight = in_flight = state.in_flight - tokens
        if state is not upcoming:
            continue
        upcoming = next(samples, None)
        output = state.num_output + 1
        limit = state.output_limit
        if output > limit:
            outcome.discarded.append(state)
            continue
        state.num_output = output
        deliver(state)
        if epoch != state.preemptions:
            outcome.stale.append(state)
        elif asynchronous:
            state.placeholders -= 1
            if caching:
                processed = state.num_computed - in_flight
                if processed // block_size > state.num_cached_blocks:
                    core.cache_up_to(state, processed)
        if output == limit:
            _finish_late(core, state, outcome)
    if outcome.finished:
        _drop_finished(core)
    return outcome


def _finish_late(core: EngineCore, state: RequestState, outcome: StepOutcome) -> None:
    if state.status is Status.PREEMPTED:
        core.waiting.remove(state)
        outcome.finished_waiting.append(state)
    core.finish(state)
    outcome.finished.append(state)


def _drop_finished(core: EngineCore) -> None:
    core.running[:] = [state for state in core.running if state.status is not Status.FINISHED]
