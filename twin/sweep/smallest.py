"""`smallest`: the first number for which something is so, asked as seldom as can be."""

from collections.abc import Callable


def smallest(holds: Callable[[int], bool], least: int, most: int) -> int | None:
    """Return the smallest number in [least, most] for which `holds`; None: it does for none.

    Steps that double find one that holds, bisection the smallest: once it holds, it is taken to
    hold for every larger number. Of the answer n, both n and n - 1 (unless below `least`) were
    asked.

    Args:
        holds: is asked a number at a time; a number may be asked again in another search.
        least, most: bounds, both included.
    """
    below, step = least - 1, 1
    while True:
        number = min(below + step, most)
        if holds(number):
            break
        if number == most:
            return None
        below, step = number, 2 * step
    while number - below > 1:
        middle = (below + number) // 2
        if holds(middle):
            number = middle
        else:
            below = middle
    return number


def most_questions(numbers: int) -> int:
    """Return how many numbers a search asks for at most, of so many: for a progress bar."""
    return 2 * max(1, numbers.bit_length())
