"""The figures of a capacity as cards show them."""

from collections.abc import Callable

from app.answers.capacity.answer import CapacityAnswer
from app.answers.forecast.figures import Better, Figure
from twin.report.numbers import count, significant

_ROWS: tuple[tuple[str, Callable[[CapacityAnswer], float | None], bool, Better, str], ...] = (
    ("Weights", lambda one: one.weights_gib, True, "lower", "of one GPU"),
    ("KV cache", lambda one: one.kv_gib, True, "higher", "of one GPU"),
    ("KV tokens", lambda one: one.kv_tokens, False, "higher", "that requests can hold"),
    (
        "Requests at P99 context",
        lambda one: one.at_p99,
        False,
        "higher",
        "of one engine, nothing shared, whatever its own limit",
    ),
)
"""Title, value, whether it is GiB, which way is better, what it is."""


def capacity_figures(now: CapacityAnswer, before: CapacityAnswer | None) -> list[Figure]:
    """Return the four figures of the capacity page.

    Bytes are reckoned, not forecast: two budgets differ by what their setups differ in, so no
    difference between them is within an error.

    Args:
        now: of the view.
        before: of the baseline; None: there is nothing to compare with.
    """
    rows = []
    for title, value, is_gib, better, about in _ROWS:
        here = value(now)
        text = f"{significant(here)} GiB" if is_gib else count(here)
        was = None if before is None else value(before)
        rows.append(Figure(title, text, here, was, better, 0.0, about))
    return rows
