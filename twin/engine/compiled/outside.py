"""What the world outside a replica asks of it or does to it, at the instant it stands at."""

from typing import Any

import numpy as np

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import FINISHED, RUNNING
from twin.engine.compiled.loop import CALL, FEWEST_STEPS
from twin.engine.compiled.memory import (
    blocks_of,
    flights,
    hash_tables,
    pieces,
    policies,
    replicas,
    requests,
    running_of,
)
from twin.engine.compiled.paging import free, slot_of
from twin.engine.compiled.pricing import decode_seconds, piece_at
from twin.engine.compiled.queue import dequeue, drain
from twin.engine.compiled.quiet import quiet_calls


@compiled
def first_end_s(s: Any, r: int) -> float:
    """Return an instant before which no request ends, if nothing comes; -1: a price is missing."""
    policy, replica = policies(s)[0], replicas(s)[r]
    if replica.phase != CALL:
        return replica.now_s
    if not (
        replica.inbox or replica.flights or replica.unsent or replica.running or replica.waiting
    ):
        return np.inf
    drain(s, r)
    calls, seqs = quiet_calls(s, r), replica.running
    now_s, free_s, flying_s = replica.now_s, replica.free_s, 0.0
    if calls < FEWEST_STEPS:
        return now_s
    launch_s = policy.schedule_s + policy.schedule_per_seq_s * seqs
    update_s = policy.update_s + policy.update_per_seq_s * seqs
    old_update_s, kv_tokens, last_kv, row = update_s, seqs, -1, -1
    if policy.asynchronous:
        flight = flights(s)[r, replica.oldest]
        flying_s = flight.end_s
        old_update_s = policy.update_s + policy.update_per_seq_s * flight.count
    for place in range(seqs):
        kv_tokens += requests(s)[running_of(s)[r, place]].computed
    for _ in range(calls):
        if kv_tokens > last_kv:
            row = piece_at(s, seqs, kv_tokens)
            if row < 0:
                return -1.0
            last_kv = pieces(s)[row].last_kv
        launched_s = now_s + launch_s
        end_s = max(launched_s, free_s) + decode_seconds(pieces(s)[row], kv_tokens)
        waited_s = flying_s if policy.asynchronous else end_s
        now_s = max(launched_s, waited_s + policy.wake_s) + old_update_s
        free_s, flying_s, old_update_s = end_s, end_s, update_s
        kv_tokens += seqs
    return now_s


@compiled
def cached_keys(s: Any, r: int, keys: Any) -> int:
    """Return how many leading keys a replica's cache holds."""
    table = hash_tables(s)[r]
    for index in range(keys.size):
        if table[slot_of(table, keys[index])].block == 0:
            return index
    return keys.size


@compiled
def abort(s: Any, r: int, row: int) -> bool:
    """Take a request back (`EngineCore.abort`); False: it had ended."""
    replica, request = replicas(s)[r], requests(s)[row]
    if request.status >= FINISHED:
        return False
    drain(s, r)
    if request.status == RUNNING:
        kept = 0
        for place in range(replica.running):
            other = running_of(s)[r, place]
            if other != row:
                running_of(s)[r, kept] = other
                kept += 1
        replica.running = kept
    else:
        dequeue(s, r, row)
    replica.live_tokens -= request.prompt + request.output
    request.limit = request.output
    request.status = FINISHED
    free(s, r, row)
    request.placeholders = 0
    replica.unsent = 1
    return True


@compiled
def held(s: Any, r: int, out: Any) -> int:
    """Write which requests a replica has: running, waiting, not yet seen; return how many."""
    replica = replicas(s)[r]
    count = 0
    for place in range(replica.running):
        out[count] = running_of(s)[r, place]
        count += 1
    row = replica.first
    while row >= 0:
        out[count] = row
        count += 1
        row = requests(s)[row].after
    row = replica.inbox_first
    while row >= 0:
        out[count] = row
        count += 1
        row = requests(s)[row].after
    return count


@compiled
def reset(s: Any, r: int) -> None:
    """Lose everything but the counters: an engine core that starts anew."""
    replica = replicas(s)[r]
    replica.phase = replica.executed = replica.idle_iterations = 0
    replica.running = replica.waiting = replica.inbox = 0
    replica.first = replica.last = replica.inbox_first = replica.inbox_last = -1
    replica.unsent = replica.flights = replica.oldest = replica.live_tokens = 0
    replica.now_s = replica.free_s = 0.0
    replica.free_blocks = policies(s)[0].usable_blocks
    cells = blocks_of(s)[r]
    for block in range(cells.size):
        cells[block].holders = cells[block].has_key = 0
        cells[block].after = (block + 1) % cells.size
        cells[block].before = (block + cells.size - 1) % cells.size
    table = hash_tables(s)[r]
    for place in range(table.size):
        table[place].block = 0
