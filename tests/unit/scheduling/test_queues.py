"""Order of the waiting queues."""

from twin.request import Request, RequestState
from twin.scheduling.queues import FcfsQueue, PriorityQueue


def state(index: int, priority: int = 0, arrival_s: float = 0.0) -> RequestState:
    return RequestState(Request(index, arrival_s, 10, 10, priority=priority))


def test_fcfs_puts_back_in_front() -> None:
    queue = FcfsQueue()
    first, second, third = (state(index) for index in range(3))
    queue.add(first)
    queue.add(second)
    queue.put_back(third)
    assert queue.head() is third
    assert [queue.pop() for _ in range(3)] == [third, first, second]
    assert len(queue) == 0


def test_priority_orders_by_priority_then_arrival_then_index() -> None:
    queue = PriorityQueue()
    states = [state(4, 1, 0.0), state(3, 0, 5.0), state(2, 0, 5.0), state(1, 0, 9.0)]
    for item in states[:3]:
        queue.add(item)
    queue.put_back(states[3])
    assert queue.head().request.index == 2
    assert [queue.pop().request.index for _ in range(4)] == [2, 3, 1, 4]


def test_remove_from_the_middle() -> None:
    for queue in (FcfsQueue(), PriorityQueue()):
        states = [state(index) for index in range(5)]
        for item in states:
            queue.add(item)
        queue.remove(states[2])
        assert [queue.pop().request.index for _ in range(len(queue))] == [0, 1, 3, 4]
