"""The loop of an engine core (`twin.engine.replica`), from one instant to another."""

from typing import Any

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import (
    ENDED,
    GAPS,
    RUNS,
    STEPS,
    TABLE,
    TAKEN,
    WAITING,
)
from twin.engine.compiled.memory import (
    counters,
    ended_rows,
    flights,
    gaps,
    policies,
    replicas,
    requests,
    runs,
    splits,
    steps,
    table_blocks,
    taken_of,
)
from twin.engine.compiled.paging import write_keys
from twin.engine.compiled.process import process
from twin.engine.compiled.queue import drain
from twin.engine.compiled.quiet import quiet_calls, ride
from twin.engine.compiled.schedule import schedule
from twin.engine.compiled.step_price import step_time

CALL, PRICE, OUT = 0, 1, 2
"""Phases: before a schedule call; a plan waits for its price; a step's output is waited for."""

REACHED, IDLE, PRICE_MISSING, FULL, SOMEBODY_ENDED, STUCK = range(6)
"""Why `advance` stopped."""

FEWEST_STEPS = 2
MOST_SAMPLED = 1024
"""Steps of a run that is sampled, each of which may add a row to the logs."""

NOTHING_SCHEDULED_S = 1e-3
_STUCK_ITERATIONS = 10_000


@compiled
def _has_room(s: Any) -> bool:
    """Whether the logs can take whatever one iteration writes."""
    seqs, size = policies(s)[0].most_running, policies(s)[0].block_size
    return (
        counters(s)[STEPS] + MOST_SAMPLED < steps(s).size
        and counters(s)[RUNS] < runs(s).size
        and counters(s)[TAKEN] + size <= taken_of(s).size
        and counters(s)[GAPS] + seqs + MOST_SAMPLED < gaps(s).size
        and counters(s)[ENDED] + 2 * seqs <= ended_rows(s).size
    )


@compiled
def _has_unfinished(s: Any, r: int) -> bool:
    return replicas(s)[r].running > 0 or replicas(s)[r].waiting > 0


@compiled
def _record(s: Any, r: int, decodes: int, bound: int, times: Any) -> None:
    replica, stride = replicas(s)[r], policies(s)[0].stride
    replica.steps += 1
    if stride != 1 and (stride == 0 or (replica.steps - 1) % stride):
        return
    step = steps(s)[counters(s)[STEPS]]
    flight = flights(s)[r, replica.slot]
    step.scheduled_s, step.start_s, step.end_s = times
    step.replica, step.prefill, step.decode = r, flight.tokens - decodes, decodes
    step.running, step.waiting = replica.running, replica.waiting
    step.used_blocks = policies(s)[0].usable_blocks - replica.free_blocks
    step.preempted, step.bound = replica.preempted, bound
    counters(s)[STEPS] += 1


@compiled
def _launch(s: Any, r: int) -> bool:
    """Put the plan of the current slot on the GPU; False: its price is missing."""
    policy, replica = policies(s)[0], replicas(s)[r]
    flight = flights(s)[r, replica.slot]
    now_s = replica.now_s
    launched_s = now_s + (policy.schedule_s + policy.schedule_per_seq_s * flight.count)
    replica.launched_s = launched_s
    if flight.tokens == 0:
        flight.end_s, flight.empty = launched_s, 1
        replica.executed = 0
    else:
        seconds, bound, decodes = step_time(s, r, replica.slot)
        if seconds < 0:
            return False
        start_s = max(launched_s, replica.free_s)
        end_s = start_s + seconds
        replica.free_s = end_s
        flight.end_s, flight.empty = end_s, 0
        replica.executed = 1
        _record(s, r, decodes, bound, (now_s, start_s, end_s))
    replica.flights += 1
    return True


@compiled
def _wait_for_output(s: Any, r: int, now_s: float) -> None:
    """Take the oldest step in flight; its output is there at the replica's next instant."""
    policy, replica = policies(s)[0], replicas(s)[r]
    flight = flights(s)[r, replica.oldest]
    seen_s = flight.end_s if flight.empty else flight.end_s + policy.wake_s
    update_s = policy.update_s + policy.update_per_seq_s * flight.count
    replica.now_s = max(now_s, seen_s) + update_s
    replica.phase = OUT


@compiled
def _iterate(s: Any, r: int) -> None:
    """Decide where the loop goes on after a schedule call was launched, or none was due."""
    policy, replica = policies(s)[0], replicas(s)[r]
    if replica.flights < 1 + policy.asynchronous and (replica.executed or _has_unfinished(s, r)):
        replica.now_s = replica.launched_s
        if not replica.executed:
            replica.now_s = replica.launched_s + NOTHING_SCHEDULED_S
        replica.phase = CALL
        return
    _wait_for_output(s, r, replica.launched_s)


@compiled
def _end_iteration(s: Any, r: int) -> bool:
    """The output was processed; False: the replica makes no progress."""
    replica = replicas(s)[r]
    replica.phase = CALL
    if replica.executed:
        replica.idle_iterations = 0
    elif _has_unfinished(s, r):
        replica.idle_iterations += 1
        replica.now_s += NOTHING_SCHEDULED_S
        return replica.idle_iterations <= _STUCK_ITERATIONS
    return True


@compiled
def _call(s: Any, r: int, until_s: float) -> int:
    """Begin an iteration; return why to stop, -1: do not."""
    policy, replica = policies(s)[0], replicas(s)[r]
    drain(s, r)
    calls = quiet_calls(s, r)
    if policy.stride != 1:
        calls = min(calls, MOST_SAMPLED)
    if calls >= FEWEST_STEPS:
        taken = ride(s, r, calls, until_s)
        if taken < 0:
            return PRICE_MISSING
        if taken > 0:
            return -1
    if not (replica.unsent or _has_unfinished(s, r)):
        replica.executed = 0
        _wait_for_output(s, r, replica.now_s)
        return -1
    replica.slot = 0
    if policy.asynchronous and replica.flights:
        replica.slot = 1 - replica.oldest
    elif not replica.flights:
        replica.oldest = 0
    schedule(s, r)
    replica.phase = PRICE
    return -1


@compiled
def advance(s: Any, r: int, call_until_s: float, until_s: float, hears: bool) -> int:
    """Go on until nothing happens before `until_s`; return why it stopped.

    Args:
        s, r: where.
        call_until_s: a schedule call at this instant or after it is not made yet.
        until_s: nothing else happens at this instant or after it.
        hears: stop after every output that ends requests.
    """
    replica = replicas(s)[r]
    while True:
        if replica.phase == CALL:
            busy = replica.inbox or replica.flights or replica.unsent or _has_unfinished(s, r)
            if not busy:
                return IDLE
            if replica.now_s >= call_until_s:
                return REACHED
            if not _has_room(s):
                return FULL
            why = _call(s, r, until_s)
            if why >= 0:
                return why
        elif replica.phase == PRICE:
            if not _launch(s, r):
                return PRICE_MISSING
            _iterate(s, r)
        else:
            if replica.now_s >= until_s:
                return REACHED
            if not _has_room(s):
                return FULL
            ended = counters(s)[ENDED]
            process(s, r, replica.now_s)
            replica.flights -= 1
            replica.oldest = 1 - replica.oldest if policies(s)[0].asynchronous else 0
            at_s = replica.now_s
            if not _end_iteration(s, r):
                return STUCK
            if hears and counters(s)[ENDED] > ended:
                splits(s)[0] = at_s
                return SOMEBODY_ENDED


@compiled
def submit(s: Any, r: int, row: int, at_s: float) -> bool:
    """Hand a request to a replica that has been advanced to now; False: the tables are full."""
    request, replica = requests(s)[row], replicas(s)[r]
    size = policies(s)[0].block_size
    if not request.room:
        room = (request.prompt + request.limit) // size + 2
        if counters(s)[TABLE] + room > table_blocks(s).size:
            return False
        request.place, request.room = counters(s)[TABLE], room
        counters(s)[TABLE] += room
        if policies(s)[0].caching:
            write_keys(s, row)
    idle = not (
        replica.inbox or replica.flights or replica.unsent or replica.phase
    ) and not _has_unfinished(s, r)
    if idle:
        replica.now_s = at_s
    request.status, request.replica = WAITING, r
    request.before, request.after = replica.inbox_last, -1
    if replica.inbox_last < 0:
        replica.inbox_first = row
    else:
        requests(s)[replica.inbox_last].after = row
    replica.inbox_last = row
    replica.inbox += 1
    replica.live_tokens += request.prompt
    return True


@compiled
def feed(s: Any, rows: Any, targets: Any, at_s: Any, start: int) -> tuple[int, int, int]:
    """Submit requests in order of time, advancing each replica up to then.

    Returns:
        (requests done, why it stopped or -1, replica that stopped).
    """
    for index in range(start, rows.size):
        r = targets[index]
        why = advance(s, r, at_s[index], at_s[index], False)
        if why != REACHED and why != IDLE:
            return index, why, r
        if not submit(s, r, rows[index], at_s[index]):
            return index, FULL, r
    return rows.size, -1, 0


@compiled
def advance_all(s: Any, until_s: float) -> tuple[int, int]:
    """Advance every replica; return (why it stopped or -1, the replica that did)."""
    for r in range(replicas(s).size):
        why = advance(s, r, until_s, until_s, False)
        if why != REACHED and why != IDLE:
            return why, r
    return -1, 0
