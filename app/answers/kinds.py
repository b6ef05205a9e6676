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


def _export(question: Question, say: Say) -> Answer:
    from app.answers.exports import exports

    say(0, None, "simulations: the forecast in the files' headers")
    return exports(question["study"])


KINDS: dict[str, Callable[[Question, Say], Answer]] = {"forecast": _forecast, "export": _export}
