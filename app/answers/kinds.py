"""`KINDS`: the questions that may take long enough to be given a process of their own."""

from collections.abc import Callable, Mapping
from typing import Any

from app.answers.setup import Setup

Say = Callable[[int, int | None, str], None]
"""Takes (done, total or None, of what)."""

Question = Mapping[str, Any]
Answer = dict[str, Any]


def _forecast(question: Question, say: Say) -> Answer:
    from app.answers.forecast import forecast

    def progress(ended: int, expected: int | None) -> None:
        say(ended, expected, "requests")

    return forecast(Setup(**question["setup"]), progress).as_dict()


def _kv_dtype(question: Question, say: Say) -> Answer:
    from app.answers.kv_worth import kv_worth

    def progress(ended: int, expected: int | None) -> None:
        say(ended, expected, "requests")

    return kv_worth(Setup(**question["setup"]), question["dtype"], progress).as_dict()


def _size(question: Question, say: Say) -> Answer:
    from app.answers.sizing import sizing

    def progress(done: int, total: int) -> None:
        say(done, total, "simulations at most")

    return sizing(Setup(**question["setup"]), progress).as_dict()


KINDS: dict[str, Callable[[Question, Say], Answer]] = {
    "forecast": _forecast,
    "kv_dtype": _kv_dtype,
    "size": _size,
}
