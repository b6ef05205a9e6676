"""A progress bar for long runs, on standard error and only on a terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_SHOW_AFTER_S = 0.7
_EVERY = 256


@contextmanager
def shown_progress(
    console: Console, quiet: bool
) -> Iterator[Callable[[int, int | None], None] | None]:
    """Yield a callback for (ended, expected) requests; None where nobody would see it."""
    stderr = Console(stderr=True)
    del console
    if quiet or not stderr.is_terminal:
        yield None
        return
    bar = Progress(
        TextColumn("simulating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("requests"),
        TimeRemainingColumn(),
        console=stderr,
        transient=True,
    )
    task = bar.add_task("simulating", total=None)
    started = time.perf_counter()
    shown = False

    def advance(ended: int, expected: int | None) -> None:
        nonlocal shown
        if ended % _EVERY:
            return
        if not shown and time.perf_counter() - started > _SHOW_AFTER_S:
            bar.start()
            shown = True
        bar.update(task, completed=ended, total=expected)

    try:
        yield advance
    finally:
        if shown:
            bar.stop()


@contextmanager
def shown_work(total: int) -> Iterator[Callable[[int, str, float], None]]:
    """Yield a callback for (pieces done, what is being done, seconds left); without a terminal
    it shows nothing.
    """
    stderr = Console(stderr=True)
    if not stderr.is_terminal:
        yield lambda _done, _what, _left_s: None
        return
    bar = Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]} left"),
        TextColumn("{task.description}", markup=False),
        console=stderr,
        transient=True,
    )
    task = bar.add_task("", total=total, left="")

    def show(done: int, what: str, left_s: float) -> None:
        minutes, seconds = divmod(max(int(left_s), 0), 60)
        bar.update(task, completed=done, description=what, left=f"{minutes}:{seconds:02}")

    with bar:
        yield show
