"""Runs of iterations in which every generation of TensorRT-LLM's scheduler advances by a token.

As long as nothing is fetched and nobody ends, such a run is known ahead: `quiet_calls` says how
many iterations it lasts at least, `skip_calls` does what that many would do, each followed by the
processing of the oldest step in flight. A scheduler after both is in every field the one that went
iteration by iteration.
"""

from twin.request import RequestState
from twin.scheduling.memory_left import steps_that_fit
from twin.scheduling.trtllm.active import ActiveRequest
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.limits import TrtllmLimits


def generations_of(active: list[ActiveRequest]) -> list[RequestState]:
    """Return the requests whose prompt is computed, in order of arrival."""
    return [a.state for a in active if a.state.num_computed >= a.context_tokens]


def quiet_calls(states: list[RequestState], limits: TrtllmLimits, kv: KvCache) -> int:
    """Return how many iterations from now on advance all these generations.

    0: the next one may not, or nobody knows without trying it. With overlap one step must be in
    flight, without none. Contexts must stay out (`CapacityScheduler.keeps_out`).
    """
    if not states or len(states) > limits.max_num_tokens:
        return 0
    ahead = int(limits.overlap)
    if any(state.placeholders != ahead for state in states):
        return 0
    # The call that would process a last token is not quiet. It comes before one that leaves out
    # a request whose last token is foreseen to be in flight.
    calls = min(state.output_limit - state.num_output for state in states) - 1
    return _with_free_blocks(states, limits.tokens_per_block, kv.num_free, calls)


def _with_free_blocks(states: list[RequestState], size: int, free: int, calls: int) -> int:
    """Return how many of `calls` iterations find the blocks they take."""
    plenty = len(states) * (calls // size + 1) <= free

    def needed(steps: int) -> int:
        held = (state.num_computed for state in states)
        return sum(-(-(tokens + steps) // size) - -(-tokens // size) for tokens in held)

    return steps_that_fit(max(calls, 0), plenty, free, needed)


def skip_calls(
    states: list[RequestState], limits: TrtllmLimits, kv: KvCache, calls: int
) -> list[int]:
    """Advance by that many quiet iterations; return the blocks each of them takes."""
    taken = [0] * calls
    for step, stores, _, state, tokens in events_of(states, limits, calls):
        if stores:
            kv.store(state, tokens)
        else:
            kv.allocate(1, state.blocks)
            taken[step - 1] += 1
    for state in states:
        state.num_computed += calls
        state.num_output += calls
    return taken


_Event = tuple[int, bool, int, RequestState, int]


def events_of(states: list[RequestState], limits: TrtllmLimits, calls: int) -> list[_Event]:
    """Return (step from 1, it stores a block, place, request, tokens) in order of happening.

    In a step all requests that need one first take a block: those whose KV sequence fills the
    blocks they hold. Then the results are processed: a block is stored once all its tokens are
    known and computed.
    """
    size = limits.tokens_per_block
    events: list[_Event] = []
    for place, state in enumerate(states):
        first = -state.num_computed % size + 1
        events += [(step, False, place, state, 0) for step in range(first, calls + 1, size)]
        if not limits.enable_block_reuse:
            continue
        known = state.num_tokens - 1
        tokens = max((state.num_cached_blocks + 1) * size, known + 1)
        while tokens <= known + calls:
            events.append((tokens - known, True, place, state, tokens))
            tokens += size - tokens % size
    events.sort(key=_when)
    return events


def _when(event: _Event) -> tuple[int, bool, int]:
    return event[:3]
