"""One decision of vLLM's scheduler (`twin.scheduling.running_pass`, `waiting_pass`)."""

from typing import Any

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import PREEMPTED, RUNNING
from twin.engine.compiled.memory import (
    flights,
    plans,
    policies,
    replicas,
    requests,
    running_of,
    scratch,
)
from twin.engine.compiled.paging import allocate, cache_up_to, free, hold, look_up, unheld
from twin.engine.compiled.queue import dequeue, put_back

_NO_CAP = 2**62


@compiled
def _enter(s: Any, r: int, row: int, tokens: int, samples: bool) -> None:
    """Add a request to the plan being made."""
    replica = replicas(s)[r]
    flight = flights(s)[r, replica.slot]
    entry = plans(s)[r, replica.slot, flight.count]
    entry.row, entry.tokens, entry.samples = row, tokens, samples
    entry.epoch = requests(s)[row].preemptions
    flight.count += 1
    flight.samples += samples


@compiled
def _preempt(s: Any, r: int, row: int) -> None:
    """Take all blocks from a request already out of the running ones and queue it again."""
    request, replica = requests(s)[row], replicas(s)[r]
    free(s, r, row)
    request.computed = request.placeholders = 0
    request.status = PREEMPTED
    request.preemptions += 1
    put_back(s, r, row)
    replica.preempted += 1


@compiled
def _least_urgent(s: Any, r: int) -> int:
    """Return the place of the largest (priority, arrival); of equal ones the first."""
    best = 0
    for place in range(1, replicas(s)[r].running):
        request, worst = requests(s)[running_of(s)[r, place]], requests(s)[running_of(s)[r, best]]
        if request.priority > worst.priority or (
            request.priority == worst.priority and request.stamp_s > worst.stamp_s
        ):
            best = place
    return best


@compiled
def _undo(s: Any, r: int, row: int) -> int:
    """Take a victim out of the plan again; return the tokens it had been given."""
    slot = replicas(s)[r].slot
    flight = flights(s)[r, slot]
    for place in range(flight.count):
        if plans(s)[r, slot, place].row != row:
            continue
        tokens = plans(s)[r, slot, place].tokens
        flight.samples -= plans(s)[r, slot, place].samples
        for at in range(place, flight.count - 1):
            plans(s)[r, slot, at] = plans(s)[r, slot, at + 1]
        flight.count -= 1
        if policies(s)[0].asynchronous:
            requests(s)[row].in_flight -= tokens
        return tokens
    return 0


@compiled
def _make_room(s: Any, r: int, needed: int, row: int, index: int) -> tuple[int, int]:
    """Preempt until enough blocks are free or the request itself had to go.

    Args:
        s, r: where.
        needed: blocks.
        row: the request that needs them; `index`: its place among the running ones.

    Returns:
        How many left at or before that place, and the tokens that come back to the budget.
    """
    replica = replicas(s)[r]
    removed = returned = 0
    while needed > replica.free_blocks:
        place = replica.running - 1
        if policies(s)[0].priority:
            place = _least_urgent(s, r)
            removed += place <= index - removed
        victim = running_of(s)[r, place]
        for at in range(place, replica.running - 1):
            running_of(s)[r, at] = running_of(s)[r, at + 1]
        replica.running -= 1
        if policies(s)[0].priority:
            returned += _undo(s, r, victim)
        _preempt(s, r, victim)
        if victim == row:
            break
    return removed, returned


@compiled
def _schedule_running(s: Any, r: int, cap: int) -> int:
    """Give every running request its next tokens; return what is left of the budget."""
    policy, replica = policies(s)[0], replicas(s)[r]
    size, last_position = policy.block_size, policy.max_model_len - 1
    budget, index = policy.max_num_batched_tokens, 0
    while index < replica.running and budget > 0:
        row = running_of(s)[r, index]
        request = requests(s)[row]
        index += 1
        computed, ahead = request.computed, request.placeholders
        if ahead and computed + 2 - ahead >= request.prompt + request.max_tokens:
            continue
        known = request.prompt + request.output
        goal = known + ahead
        end = goal
        if end > computed + 1:
            end = computed + min(end - computed, cap, budget)
        end = min(end, last_position)
        if end <= computed:
            continue
        needed = -(-end // size) - request.blocks
        if needed > 0:
            if needed > replica.free_blocks:
                removed, returned = _make_room(s, r, needed, row, index - 1)
                index -= removed
                budget += returned
                if request.status != RUNNING:
                    if not policy.priority:
                        break
                    continue
            allocate(s, r, row, needed)
        if policy.caching:
            cache_up_to(s, r, row, min(end, known))
        request.computed = end
        tokens = end - computed
        budget -= tokens
        _enter(s, r, row, tokens, end == goal)
        if policy.asynchronous:
            request.in_flight += tokens
            if end == goal:
                request.placeholders = ahead + 1
    return budget


@compiled
def new_blocks(s: Any, r: int, row: int, hits: int, tokens: int) -> int:
    """Return the blocks beyond the hits that an admission needs; -1: it must wait."""
    policy, replica, request = policies(s)[0], replicas(s)[r], requests(s)[row]
    size = policy.block_size
    available = replica.free_blocks - unheld(s, r, row, hits)
    if replica.running:
        available -= policy.watermark_blocks
    if policy.reserve_full_isl:
        everything = min(request.prompt + request.output, policy.max_model_len)
        if -(-everything // size) - hits > available:
            return -1
    end = min(hits * size + tokens, policy.max_model_len)
    needed = max(0, -(-end // size) - hits)
    return needed if needed <= available else -1


@compiled
def _count_look_up(s: Any, r: int, row: int, hit_tokens: int) -> None:
    replica, request = replicas(s)[r], requests(s)[row]
    known = request.prompt + request.output
    if request.preemptions:
        replica.again_requests += 1
        replica.again_queries += known
        replica.again_hits += hit_tokens
    else:
        replica.requests += 1
        replica.queries += known
        replica.hits += hit_tokens


@compiled
def _admit(s: Any, r: int, row: int, hits: int, needed: int) -> None:
    """Give a request its blocks and a place at the end of the running ones."""
    policy, replica, request = policies(s)[0], replicas(s)[r], requests(s)[row]
    hit_tokens = hits * policy.block_size
    hold(s, r, row, hits)
    allocate(s, r, row, needed)
    request.cached_blocks = hits
    request.computed = hit_tokens
    if request.cached_tokens < 0:
        request.cached_tokens = hit_tokens
    if policy.caching:
        _count_look_up(s, r, row, hit_tokens)
    request.status = RUNNING
    running_of(s)[r, replica.running] = row
    replica.running += 1
    if request.scheduled_s != request.scheduled_s:  # first admission
        request.scheduled_s = replica.now_s


@compiled
def _start(s: Any, r: int, row: int, tokens: int) -> None:
    """Enter an admitted request into the plan."""
    policy, request = policies(s)[0], requests(s)[row]
    known = request.prompt + request.output
    request.computed += tokens
    end = request.computed
    _enter(s, r, row, tokens, end == known)
    if policy.caching:
        cache_up_to(s, r, row, min(end, known))
    if policy.asynchronous:
        request.in_flight += tokens
        request.placeholders = 1 if end == known else 0


@compiled
def _admit_waiting(s: Any, r: int, cap: int, budget: int) -> int:
    """Admit from the head of the queue while budget, places and blocks last."""
    policy, replica = policies(s)[0], replicas(s)[r]
    passed_over = 0
    while budget > 0 and replica.waiting and replica.running < policy.max_num_seqs:
        row = replica.first
        request = requests(s)[row]
        if request.in_flight:
            dequeue(s, r, row)
            scratch(s)[passed_over] = row
            passed_over += 1
            continue
        known = request.prompt + request.output
        hits = 0
        if policy.caching:
            hits = look_up(s, r, row, (known - 1) // policy.block_size)
        tokens = min(known - hits * policy.block_size, cap)
        if tokens > budget and not policy.chunked:
            break
        tokens = min(tokens, budget)
        needed = new_blocks(s, r, row, hits, tokens)
        if needed < 0:
            break
        dequeue(s, r, row)
        budget -= tokens
        _admit(s, r, row, hits, needed)
        _start(s, r, row, tokens)
    for place in range(passed_over - 1, -1, -1):
        put_back(s, r, scratch(s)[place])
    return budget


@compiled
def schedule(s: Any, r: int) -> None:
    """Make the plan of the replica's current slot."""
    policy, replica = policies(s)[0], replicas(s)[r]
    flight = flights(s)[r, replica.slot]
    flight.count = flight.samples = 0
    replica.preempted = 0
    cap = _NO_CAP
    if policy.threshold and replica.running + replica.waiting > 1:
        cap = policy.threshold
    budget = _schedule_running(s, r, cap)
    if budget > 0 and not replica.preempted and replica.waiting:
        budget = _admit_waiting(s, r, cap, budget)
    flight.tokens = policy.max_num_batched_tokens - budget
    replica.unsent = 0
