"""What has become of requests, written where the rest of the engine looks for it."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from twin.engine.compiled import layout
from twin.engine.recorder import RequestRecorder
from twin.engine.result import FINISHED
from twin.request import RequestState

_NAMES = layout.REQUEST.names or ()
_DELIVERED, _CACHED, _PREEMPTIONS = (
    _NAMES.index(name) for name in ("delivered", "cached_tokens", "preemptions")
)


def tell(requests: RequestRecorder, state: RequestState, row: tuple[Any, ...]) -> None:
    """Write down one request, whose row of `layout.REQUEST` is given as a tuple."""
    index = state.request.index
    _, scheduled_s, first_s, last_s, finish_s = row[:5]
    requests.scheduled_s[index], requests.first_token_s[index] = scheduled_s, first_s
    requests.last_token_s[index], requests.output_tokens[index] = last_s, row[_DELIVERED]
    state.cached_tokens, state.preemptions = row[_CACHED], row[_PREEMPTIONS]
    if not math.isnan(finish_s):
        requests.finish((state,), finish_s)


def tell_many(requests: RequestRecorder, states: Iterable[RequestState], rows: Any) -> None:
    """Write down many requests; `rows` are theirs, of dtype `layout.REQUEST`."""
    states = list(states)
    indices = np.array([state.request.index for state in states], dtype=np.int64)
    for column, name in (
        (requests.scheduled_s, "scheduled_s"), (requests.first_token_s, "first_token_s"),
        (requests.last_token_s, "last_token_s"), (requests.output_tokens, "delivered"),
    ):  # fmt: skip
        _put(column, indices, rows[name])
    ended = rows["status"] == layout.FINISHED
    _put(requests.finish_s, indices[ended], rows["finish_s"][ended])
    _put(requests.outcome, indices[ended], FINISHED)
    cached, preemptions = rows["cached_tokens"].tolist(), rows["preemptions"].tolist()
    for state, hit, times in zip(states, cached, preemptions, strict=True):
        state.cached_tokens, state.preemptions = hit, times


def _put(column: list[Any], indices: Any, values: Any) -> None:
    """Write values into a list, many at a time."""
    array = np.array(column)
    array[indices] = values
    column[:] = array.tolist()
