"""What processing a step's output does (`twin.scheduling.outputs`, `RequestRecorder`)."""

from typing import Any

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import ENDED, FINISHED, GAPS, PREEMPTED
from twin.engine.compiled.memory import (
    counters,
    ended_rows,
    flights,
    gaps,
    plans,
    policies,
    replicas,
    requests,
    running_of,
)
from twin.engine.compiled.paging import cache_up_to, free
from twin.engine.compiled.queue import dequeue


@compiled
def add_gap(s: Any, r: int, gap_s: float) -> None:
    """Note a gap between two tokens, if it is one that is kept."""
    replica, stride = replicas(s)[r], policies(s)[0].stride
    replica.gaps += 1
    if stride != 1 and (stride == 0 or (replica.gaps - 1) % stride):
        return
    end = counters(s)[GAPS]
    if end:
        last = gaps(s)[end - 1]
        if last.gap_s == gap_s and last.replica == r and last.times > 0:
            last.times += 1
            return
    gap = gaps(s)[end]
    gap.gap_s, gap.times, gap.replica = gap_s, 1, r
    counters(s)[GAPS] = end + 1


@compiled
def deliver(s: Any, r: int, row: int, at_s: float) -> None:
    """A token reaches the client."""
    request = requests(s)[row]
    if request.delivered:
        add_gap(s, r, at_s - request.last_token_s)
    else:
        request.first_token_s = at_s
    request.last_token_s = at_s
    request.delivered += 1
    replicas(s)[r].live_tokens += 1


@compiled
def _finish(s: Any, r: int, row: int, at_s: float) -> None:
    request, replica = requests(s)[row], replicas(s)[r]
    if request.status == PREEMPTED:
        dequeue(s, r, row)
    request.status = FINISHED
    request.finish_s = at_s
    replica.live_tokens -= request.prompt + request.output
    free(s, r, row)
    request.placeholders = 0
    replica.unsent = 1
    ended_rows(s)[counters(s)[ENDED]] = row
    counters(s)[ENDED] += 1


@compiled
def _drop_finished(s: Any, r: int) -> None:
    replica = replicas(s)[r]
    kept = 0
    for place in range(replica.running):
        row = running_of(s)[r, place]
        if requests(s)[row].status != FINISHED:
            running_of(s)[r, kept] = row
            kept += 1
    replica.running = kept


@compiled
def process(s: Any, r: int, at_s: float) -> None:
    """Process the step in flight that is in the replica's oldest slot; see `ended`."""
    policy, slot = policies(s)[0], replicas(s)[r].oldest
    flight, before = flights(s)[r, slot], counters(s)[ENDED]
    for place in range(flight.count):
        entry = plans(s)[r, slot, place]
        row = entry.row
        request = requests(s)[row]
        if policy.asynchronous:
            request.in_flight -= entry.tokens
        if not entry.samples or request.output >= request.limit:
            continue
        request.output += 1
        if policy.asynchronous and entry.epoch == request.preemptions:
            request.placeholders -= 1
            if policy.caching:
                cache_up_to(s, r, row, request.computed - request.in_flight)
        deliver(s, r, row, at_s)
        if request.output == request.limit:
            _finish(s, r, row, at_s)
    if counters(s)[ENDED] > before:
        _drop_finished(s, r)
