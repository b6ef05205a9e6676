"""How far long runs are, on standard error: a bar on a terminal, a plain line now and then else."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from twin.search.study.progress import StudyProgress

_SHOW_AFTER_S = 0.7
_EVERY = 256
_FIRST_LINE_S, _NEXT_LINE_S = 10.0, 30.0
"""Without a terminal: when the first line is due, and how long after it the next."""


class _Lines:
    """Plain lines on standard error, for logs: only those of long runs, and few of them."""

    def __init__(self) -> None:
        self._due_s = time.monotonic() + _FIRST_LINE_S

    def say(self, text: str) -> None:
        """Write a line if one is due."""
        now_s = time.monotonic()
        if now_s >= self._due_s and sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
            self._due_s = now_s + _NEXT_LINE_S


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
    """Yield a callback for (pieces done, what is being done, seconds left)."""
    stderr = Console(stderr=True)
    if not stderr.is_terminal:
        lines = _Lines()
        yield lambda done, what, left_s: lines.say(
            f"{done}/{total} done, {_clock(left_s)} left: {what}"
        )
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
        bar.update(task, completed=done, description=what, left=_clock(left_s))

    with bar:
        yield show


@contextmanager
def shown_runs(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback for (runs done, runs in all); None where nobody would see it."""
    stderr = Console(stderr=True)
    if quiet or not stderr.is_terminal:
        yield None
        return
    bar = Progress(
        TextColumn("simulating"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("runs"),
        console=stderr,
        transient=True,
    )
    task = bar.add_task("", total=None)
    with bar:
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def shown_search(quiet: bool) -> Iterator["Callable[[StudyProgress], None] | None"]:
    """Yield a callback for how far a search is; None where nobody would see it."""
    stderr = Console(stderr=True)
    if quiet:
        yield None
        return
    if not stderr.is_terminal:
        lines = _Lines()
        yield lambda now: lines.say(f"{now.done}/{now.total} trials, {_search_words(now)}")
        return
    bar = Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("trials"),
        TextColumn("{task.description}", markup=False),
        console=stderr,
        transient=True,
    )
    task = bar.add_task("", total=None)

    def show(now: "StudyProgress") -> None:
        bar.update(task, completed=now.done, total=now.total, description=_search_words(now))

    with bar:
        yield show


@contextmanager
def shown_step(quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """Yield a callback for what is being done; None where nobody would see it."""
    stderr = Console(stderr=True)
    if quiet:
        yield None
        return
    if not stderr.is_terminal:
        yield _Lines().say
        return
    with stderr.status("judging") as status:
        yield status.update


def _search_words(now: "StudyProgress") -> str:
    words = [] if now.left_s is None else [f"{_clock(now.left_s)} left"]
    if now.best is None:
        words.append("none keeps every limit yet" if now.done else "starting")
    else:
        words.append(f"best {now.best:.5g} {now.unit} (trial {now.best_number})")
    return ", ".join(words)


def _clock(left_s: float) -> str:
    minutes, seconds = divmod(max(int(left_s), 0), 60)
    return f"{minutes}:{seconds:02}"
