"""`KINDS`: the questions that may take long enough to be given a process of their own."""

from collections.abc import Callable, Mapping
from typing import Any

from app.answers.setup import Setup

Say = Callable[[int, int | None, str], None]
"""Takes (done, total or None, of what)."""

Question = Mapping[str, Any]
Answer = dict[str, Any]


def _counting(say: Say, what: str) -> Callable[[int, int | None], None]:
    def progress(done: int, total: int | None) -> None:
        say(done, total, what)

    return progress


def _forecast(question: Question, say: Say) -> Answer:
    from app.answers.forecast.forecast import forecast

    return forecast(Setup(**question["setup"]), _counting(say, "requests")).as_dict()


def _load(question: Question, say: Say) -> Answer:
    from app.answers.forecast.load import load_answer

    return load_answer(Setup(**question["setup"]), _counting(say, "simulations at most"))


def _kv_dtype(question: Question, say: Say) -> Answer:
    from app.answers.capacity.kv_worth import kv_worth

    setup = Setup(**question["setup"])
    return kv_worth(setup, question["dtype"], _counting(say, "requests")).as_dict()


def _size(question: Question, say: Say) -> Answer:
    from app.answers.capacity.sizing import sizing

    setup = Setup(**question["setup"])
    return sizing(setup, _counting(say, "simulations at most")).as_dict()


def _pool(question: Question, say: Say) -> Answer:
    from app.answers.memory.pool import pool_answer

    return pool_answer(Setup(**question["setup"]), _counting(say, "requests")).as_dict()


def _cache(question: Question, say: Say) -> Answer:
    from app.answers.memory.eviction import eviction_answer

    return eviction_answer(Setup(**question["setup"]), _counting(say, "replays")).as_dict()


def _export(question: Question, say: Say) -> Answer:
    from app.answers.search.exports import exports

    say(0, None, "simulations: the forecast in the files' headers")
    return exports(question["study"])


KINDS: dict[str, Callable[[Question, Say], Answer]] = {
    "forecast": _forecast,
    "load": _load,
    "kv_dtype": _kv_dtype,
    "size": _size,
    "export": _export,
    "pool": _pool,
    "cache": _cache,
}
