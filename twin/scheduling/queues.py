"""The waiting queue: first come first served, or a heap by priority."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from twin.request import RequestState


class WaitingQueue(Protocol):
    """Requests that hold no blocks, in the order in which they will be admitted."""

    def add(self, state: RequestState) -> None:
        """Put a new request in."""
        ...

    def head(self) -> RequestState:
        """Return the next request without taking it out; the queue must not be empty."""
        ...

    def pop(self) -> RequestState:
        """Take the next request out; the queue must not be empty."""
        ...

    def put_back(self, state: RequestState) -> None:
        """Put in a request that had been taken out or preempted."""
        ...

    def remove(self, state: RequestState) -> None:
        """Take out a request wherever it stands."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[RequestState]:
        """Iterate in the order in which they will be admitted."""
        ...


class FcfsQueue:
    """First come, first served; whoever is put back stands in front of all others."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: deque[RequestState] = deque()

    def add(self, state: RequestState) -> None:
        """See `WaitingQueue.add`."""
        self._states.append(state)

    def head(self) -> RequestState:
        """See `WaitingQueue.head`."""
        return self._states[0]

    def pop(self) -> RequestState:
        """See `WaitingQueue.pop`."""
        return self._states.popleft()

    def put_back(self, state: RequestState) -> None:
        """See `WaitingQueue.put_back`."""
        self._states.appendleft(state)

    def remove(self, state: RequestState) -> None:
        """See `WaitingQueue.remove`; O(n), needed only when a waiting request ends."""
        self._states.remove(state)

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[RequestState]:
        return iter(self._states)


class PriorityQueue:
    """Smallest (priority, arrival, index) first."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[int, float, int, RequestState]] = []

    def add(self, state: RequestState) -> None:
        """See `WaitingQueue.add`."""
        request = state.request
        heapq.heappush(self._heap, (request.priority, state.arrival_s, request.index, state))

    def head(self) -> RequestState:
        """See `WaitingQueue.head`."""
        return self._heap[0][3]

    def pop(self) -> RequestState:
        """See `WaitingQueue.pop`."""
        return heapq.heappop(self._heap)[3]

    def put_back(self, state: RequestState) -> None:
        """See `WaitingQueue.put_back`; a heap has no front to stand at."""
        self.add(state)

    def remove(self, state: RequestState) -> None:
        """See `WaitingQueue.remove`; O(n), needed only when a waiting request ends."""
        self._heap = [entry for entry in self._heap if entry[3] is not state]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[RequestState]:
        return (entry[3] for entry in sorted(self._heap, key=_order))


def _order(entry: tuple[int, float, int, RequestState]) -> tuple[int, float, int]:
    return entry[:3]


QUEUES: dict[str, Callable[[], WaitingQueue]] = {"fcfs": FcfsQueue, "priority": PriorityQueue}
"""`EnginePolicy.scheduling_policy` to its queue."""
