"""Runs of steps in which every running request decodes one token (`twin.scheduling.quiet_run`)."""

from typing import Any

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import GAPS, RUNS, TAKEN
from twin.engine.compiled.memory import (
    buckets,
    counters,
    events,
    flights,
    gaps,
    pieces,
    policies,
    replicas,
    requests,
    running_of,
    runs,
    sources,
    taken_of,
)
from twin.engine.compiled.paging import allocate, cache_up_to
from twin.engine.compiled.pricing import decode_seconds, piece_at, waits
from twin.engine.compiled.process import add_gap
from twin.engine.compiled.sampling import sample
from twin.engine.compiled.schedule import new_blocks
from twin.llm.decode_piece import PHYSICS as _PHYSICS

_ENDLESS = 2**62


@compiled
def _head_stays_blocked(s: Any, r: int, budget: int) -> bool:
    """Whether the head of the queue cannot join as long as the running requests only decode."""
    policy, replica = policies(s)[0], replicas(s)[r]
    if replica.running >= policy.max_num_seqs:
        return True
    row = replica.first
    request = requests(s)[row]
    if budget <= 0 or request.in_flight or (request.segments and policy.caching):
        return False
    missing = request.prompt + request.output
    if missing > budget and not policy.chunked:
        return True
    tokens = min(missing, budget)
    if policy.threshold:
        tokens = min(tokens, policy.threshold)
    return new_blocks(s, r, row, 0, tokens) < 0


@compiled
def quiet_calls(s: Any, r: int) -> int:
    """Return how many schedule calls from now on are decodes of all running requests."""
    policy, replica = policies(s)[0], replicas(s)[r]
    count, ahead = replica.running, policy.asynchronous
    if not count or replica.unsent or count > policy.max_num_batched_tokens:
        return 0
    if replica.flights != ahead:
        return 0
    if ahead:
        flight = flights(s)[r, replica.oldest]
        if flight.empty or not count == flight.tokens == flight.samples:
            return 0
    if replica.waiting and not _head_stays_blocked(s, r, policy.max_num_batched_tokens - count):
        return 0
    calls, last_position = _ENDLESS, policy.max_model_len - 1
    for place in range(count):
        request = requests(s)[running_of(s)[r, place]]
        computed, known = request.computed, request.prompt + request.output
        if request.placeholders != ahead or known + ahead != computed + 1:
            return 0
        left = request.limit - request.output - 1
        if ahead:
            left = min(left, request.prompt + request.max_tokens - 1 - computed)
        calls = min(calls, left, last_position - computed)
        if calls <= 0:
            return 0
    return _with_free_blocks(s, r, calls)


@compiled
def _blocks_needed(s: Any, r: int, steps: int) -> int:
    size, needed = policies(s)[0].block_size, 0
    for place in range(replicas(s)[r].running):
        request = requests(s)[running_of(s)[r, place]]
        needed += -(-(request.computed + steps) // size) - request.blocks
    return needed


@compiled
def _with_free_blocks(s: Any, r: int, calls: int) -> int:
    """Return how many of these steps find the blocks they take."""
    replica = replicas(s)[r]
    if replica.running * (calls // policies(s)[0].block_size + 1) <= replica.free_blocks:
        return calls
    low, high = 0, calls
    while low < high:
        middle = (low + high + 1) // 2
        if _blocks_needed(s, r, middle) <= replica.free_blocks:
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def _count_sources(s: Any, r: int, piece: Any, kv_tokens: int, steps: int) -> None:
    """Count the GPU seconds of steps on one line by how they were obtained."""
    seqs = replicas(s)[r].running
    for index in range(4):
        sources(s)[r, index] += steps * piece.by_source[index]
    kv_sum = steps * kv_tokens + seqs * (steps * (steps - 1) // 2)
    sources(s)[r, piece.source] += steps * piece.attention_base_s + piece.slope_s * kv_sum
    last = kv_tokens + (steps - 1) * seqs
    if waits(piece, kv_tokens) or waits(piece, last):
        for kv in range(kv_tokens, last + 1, seqs):
            waited_s = decode_seconds(piece, kv) - (piece.base_s + piece.slope_s * kv)
            sources(s)[r, _PHYSICS] += waited_s


@compiled
def _file_event(s: Any, event: int, first: int, calls: int) -> None:
    """Put an event that comes every block size from step `first` on to those of its remainder."""
    size = policies(s)[0].block_size
    if first > calls:
        return
    phase = first % size
    events(s)[event, 0], events(s)[event, 1] = -1, first
    if buckets(s)[phase, 0] < 0:
        buckets(s)[phase, 0] = event
    else:
        events(s)[buckets(s)[phase, 1], 0] = event
    buckets(s)[phase, 1] = event


@compiled
def _move_blocks(s: Any, r: int, calls: int) -> int:
    """Do what the steps do to KV blocks, in their order; return where what they take stands."""
    policy, replica = policies(s)[0], replicas(s)[r]
    size, late = policy.block_size, policy.asynchronous
    phases = min(size, calls + 1)
    for phase in range(phases):
        buckets(s)[phase, 0] = -1
    buckets(s)[0, 0] = -1
    for place in range(replica.running):
        request = requests(s)[running_of(s)[r, place]]
        _file_event(s, 2 * place, request.blocks * size + 1 - request.computed, calls)
        if policy.caching:
            first = (request.cached_blocks + 1) * size - request.computed + late
            _file_event(s, 2 * place + 1, first, calls)
    start = counters(s)[TAKEN]
    for step in range(1, calls + 1):
        taken, event = 0, buckets(s)[step % size, 0]
        while event >= 0:
            if step >= events(s)[event, 1]:
                row = running_of(s)[r, event // 2]
                if event % 2:
                    cache_up_to(s, r, row, (requests(s)[row].cached_blocks + 1) * size)
                else:
                    allocate(s, r, row, 1)
                    taken += 1
            event = events(s)[event, 0]
        if step <= size:
            taken_of(s)[start + step - 1] = taken
    counters(s)[TAKEN] = start + min(calls, size)
    return start


@compiled
def _deliver(s: Any, r: int, calls: int, first_s: float, last_s: float) -> None:
    """Each running request gets a token at every step's end."""
    for place in range(replicas(s)[r].running):
        request = requests(s)[running_of(s)[r, place]]
        if request.delivered:
            add_gap(s, r, first_s - request.last_token_s)
        else:
            request.first_token_s = first_s
        request.last_token_s = last_s
        request.delivered += calls
        request.output += calls
        request.computed += calls
    replicas(s)[r].live_tokens += calls * replicas(s)[r].running
    if policies(s)[0].stride != 1:
        return
    gap = gaps(s)[counters(s)[GAPS]]
    gap.gap_s, gap.times, gap.replica = counters(s)[RUNS], -1, r
    counters(s)[GAPS] += 1


@compiled
def ride(s: Any, r: int, most: int, until_s: float) -> int:
    """Take quiet steps that are over before `until_s`; return how many; -1: a price is missing."""
    policy, replica = policies(s)[0], replicas(s)[r]
    seqs = replica.running
    launch_s = policy.schedule_s + policy.schedule_per_seq_s * seqs
    update_s = policy.update_s + policy.update_per_seq_s * seqs
    wake_s, ahead = policy.wake_s, policy.asynchronous
    kv_tokens = seqs
    for place in range(seqs):
        kv_tokens += requests(s)[running_of(s)[r, place]].computed
    run = runs(s)[counters(s)[RUNS]]
    run.now_s, run.free_s, run.kv_tokens, run.seqs = replica.now_s, replica.free_s, kv_tokens, seqs
    run.replica, run.waiting = r, replica.waiting
    run.used_blocks = policy.usable_blocks - replica.free_blocks
    old_update_s, flying_s = update_s, 0.0
    if ahead:
        flight = flights(s)[r, replica.oldest]
        flying_s = flight.end_s
        old_update_s = policy.update_s + policy.update_per_seq_s * flight.count
    run.flying_s, run.update_s = flying_s, old_update_s
    now_s, free_s, first_s = replica.now_s, replica.free_s, 0.0
    steps, part, part_kv, last_kv, row = 0, 0, kv_tokens, -1, -1
    while steps < most and now_s < until_s:
        if kv_tokens > last_kv:
            if part:
                _count_sources(s, r, pieces(s)[row], part_kv, part)
            part, part_kv = 0, kv_tokens
            row = piece_at(s, seqs, kv_tokens)
            if row < 0:
                break
            last_kv = pieces(s)[row].last_kv
        launched_s = now_s + launch_s
        end_s = max(launched_s, free_s) + decode_seconds(pieces(s)[row], kv_tokens)
        waited_s = flying_s if ahead else end_s
        out_s = max(launched_s, waited_s + wake_s) + old_update_s
        if out_s >= until_s:
            break
        now_s, free_s, flying_s, old_update_s = out_s, end_s, end_s, update_s
        kv_tokens += seqs
        steps, part = steps + 1, part + 1
        if steps == 1:
            first_s = now_s
    if row >= 0 and part:
        _count_sources(s, r, pieces(s)[row], part_kv, part)
    if not steps:
        return -1 if row < 0 and most > 0 and now_s < until_s else 0
    run.steps = steps
    run.taken_at = _move_blocks(s, r, steps)
    _deliver(s, r, steps, first_s, now_s)
    if policy.stride == 1:
        counters(s)[RUNS] += 1
        replica.steps += steps
    else:
        sample(s, counters(s)[RUNS])
        counters(s)[TAKEN] = run.taken_at
    replica.now_s, replica.free_s = now_s, free_s
    replica.skipped += steps
    if ahead:
        flights(s)[r, replica.oldest].end_s = free_s
    return steps
