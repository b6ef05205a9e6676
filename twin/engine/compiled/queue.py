"""The waiting requests of a replica as a linked list (`twin.scheduling.queues`)."""

from typing import Any

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.memory import policies, replicas, requests


@compiled
def _before(s: Any, row: int, other: int) -> bool:
    """Whether a request comes before another by priority, arrival, index."""
    first, second = requests(s)[row], requests(s)[other]
    if first.priority != second.priority:
        return first.priority < second.priority
    if first.stamp_s != second.stamp_s:
        return first.stamp_s < second.stamp_s
    return row < other


@compiled
def _insert(s: Any, r: int, row: int, before: int) -> None:
    """Put a request behind `before`; -1: in front."""
    replica = replicas(s)[r]
    after = replica.first if before < 0 else requests(s)[before].after
    requests(s)[row].before, requests(s)[row].after = before, after
    if before < 0:
        replica.first = row
    else:
        requests(s)[before].after = row
    if after < 0:
        replica.last = row
    else:
        requests(s)[after].before = row
    replica.waiting += 1


@compiled
def enqueue(s: Any, r: int, row: int) -> None:
    """Put a new request in: at the end, or where its priority says."""
    before = replicas(s)[r].last
    if policies(s)[0].priority:
        while before >= 0 and _before(s, row, before):
            before = requests(s)[before].before
    _insert(s, r, row, before)


@compiled
def put_back(s: Any, r: int, row: int) -> None:
    """Put in a request that was taken out or preempted: in front, or where its priority says."""
    if policies(s)[0].priority:
        enqueue(s, r, row)
    else:
        _insert(s, r, row, -1)


@compiled
def dequeue(s: Any, r: int, row: int) -> None:
    """Take a request out, wherever it stands."""
    replica, request = replicas(s)[r], requests(s)[row]
    if request.before < 0:
        replica.first = request.after
    else:
        requests(s)[request.before].after = request.after
    if request.after < 0:
        replica.last = request.before
    else:
        requests(s)[request.after].before = request.before
    replica.waiting -= 1


@compiled
def drain(s: Any, r: int) -> None:
    """Let the scheduler see the requests that came."""
    replica = replicas(s)[r]
    row = replica.inbox_first
    while row >= 0:
        following = requests(s)[row].after
        enqueue(s, r, row)
        row = following
    replica.inbox_first = replica.inbox_last = -1
    replica.inbox = 0
