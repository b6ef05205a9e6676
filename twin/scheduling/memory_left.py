"""How far a batch that only decodes comes with the KV blocks that are left."""

from collections.abc import Callable


def steps_that_fit(steps: int, quick: bool, free: int, needed: Callable[[int], int]) -> int:
    """Return how many of `steps` steps find the blocks they take.

    Args:
        steps: of all, at most.
        quick: it is plain that all of them do.
        free: blocks there are.
        needed: blocks that so many steps take; it never falls.
    """
    if quick:
        return steps
    low, high = 0, steps
    while low < high:
        middle = (low + high + 1) // 2
        if needed(middle) <= free:
            low = middle
        else:
            high = middle - 1
    return low
