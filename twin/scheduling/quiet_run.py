"""Runs of steps in which every running request of vLLM's scheduler decodes one token.

As long as nothing arrives, such a run is known ahead: who is in the batch, how long each context
is, which block each step takes. `quiet_calls` says how many schedule calls it lasts at least,
`skip_calls` does what that many calls, each followed by the processing of the oldest step in
flight, would do. A scheduler after both is in every field the one that was called step by step.
"""

from twin.request import RequestState
from twin.scheduling.core import EngineCore
from twin.scheduling.memory_left import steps_that_fit
from twin.scheduling.waiting_pass import head_stays_blocked

_ENDLESS = 2**62


def quiet_calls(core: EngineCore) -> int:
    """Return how many schedule calls from now on are decodes of all running requests.

    0: the next one may not be, or nobody knows without trying it. With asynchronous scheduling
    one step must be in flight, with synchronous scheduling none.
    """
    running, limits = core.running, core.limits
    count = len(running)
    if not count or core.unsent or count > limits.max_num_batched_tokens:
        return 0
    if len(core.waiting) and not head_stays_blocked(core, limits.max_num_batched_tokens - count):
        return 0
    ahead = 1 if limits.async_scheduling else 0
    calls = _ENDLESS
    last_position = limits.max_model_len - 1
    for state in running:
        computed = state.num_computed
        request = state.request
        known = request.prompt_tokens + state.num_output
        if state.placeholders != ahead or known + ahead != computed + 1:
            return 0
        # The call that would process the last token is not quiet; nor is one that leaves out a
        # request whose last token is foreseen to be in flight.
        left = state.output_limit - state.num_output - 1
        if ahead:
            left = min(left, request.prompt_tokens + request.max_tokens - 1 - computed)
        left = min(left, last_position - computed)
        if left < calls:
            calls = left
            if calls <= 0:
                return 0
    return _with_free_blocks(core, calls)


def _with_free_blocks(core: EngineCore, calls: int) -> int:
    """Return how many of `calls` steps find the blocks they take."""
    size, free = core.limits.block_size, core.pool.num_free
    plenty = len(core.running) * (calls // size + 1) <= free

    def needed(steps: int) -> int:
        return sum(
            -(-(state.num_computed + steps) // size) - len(state.blocks) for state in core.running
        )

    return steps_that_fit(calls, plenty, free, needed)


def skip_calls(core: EngineCore, calls: int) -> list[int]:
    """Advance by that many quiet calls; return the blocks each of them takes."""
    events = _events(core, calls)
    taken = [0] * calls
    for step, _, state, caches in events:
        if caches:
            core.cache_up_to(state, (state.num_cached_blocks + 1) * core.limits.block_size)
        else:
            core.pool.allocate(1, state.blocks)
            taken[step - 1] += 1
    for state in core.running:
        state.num_computed += calls
        state.num_output += calls
    return taken


def _events(core: EngineCore, calls: int) -> list[tuple[int, int, RequestState, bool]]:
    """Return (step from 1, place and kind, request, it caches a block) in order of happening.

    Step k computes token `computed + k`; a block is taken in the first step beyond those held.
    A full block can be found from the step on that knows its last token: the one that computes
    it, or with asynchronous scheduling the one after.
    """
    size, caching = core.limits.block_size, core.limits.enable_prefix_caching
    late = 1 if core.limits.async_scheduling else 0
    events: list[tuple[int, int, RequestState, bool]] = []
    for place, state in enumerate(core.running):
        computed = state.num_computed
        first = len(state.blocks) * size + 1 - computed
        events += [(step, 2 * place, state, False) for step in range(first, calls + 1, size)]
        if caching:
            first = (state.num_cached_blocks + 1) * size - computed + late
            events += [(step, 2 * place + 1, state, True) for step in range(first, calls + 1, size)]
    events.sort(key=_when)
    return events


def _when(event: tuple[int, int, RequestState, bool]) -> tuple[int, int]:
    return event[0], event[1]
