"""Requests from arrays, all at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twin.errors import InputError
from twin.request import Content, Request
from twin.workload.trace import Finish

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LengthColumns:
    """Prompt lengths and how answers end; shape (n,) each. `stop_after` None: by max_tokens."""

    prompt_tokens: Ints
    max_tokens: Ints
    stop_after: Ints | None

    def __len__(self) -> int:
        return int(self.prompt_tokens.size)


def length_columns(
    prompt_tokens: Ints, output_tokens: Ints, finish: Finish, max_model_len: int
) -> LengthColumns:
    """Return what a client asks so that each answer has `output_tokens` tokens.

    An answer that ends by a stop token is asked for without a limit, which the server takes as
    all the room the prompt leaves (vLLM's default for a chat request without max_tokens).
    """
    if finish == "length":
        return LengthColumns(prompt_tokens, output_tokens, None)
    room = np.maximum(max_model_len - prompt_tokens, 1)
    return LengthColumns(prompt_tokens, room, output_tokens)


def refuse_too_long(
    prompt_tokens: Ints, max_model_len: int, where: str, rows: Ints | None = None
) -> None:
    """Check that every prompt leaves room for one generated token.

    Raises:
        InputError: the first that does not, by its row in the file where `rows` are given.
    """
    beyond = np.flatnonzero(prompt_tokens >= max_model_len)
    if beyond.size:
        first = int(beyond[0])
        which = f"request {first}" if rows is None else f"row {int(rows[first])}"
        raise InputError(
            f"{beyond.size} of {prompt_tokens.size} prompts leave no room for an answer within "
            f"max_model_len {max_model_len}; {which} has {int(prompt_tokens[first])} tokens",
            where=where,
            remedy="raise max_model_len, shorten the prompts, or set too_long: reject",
        )


def make_requests(
    arrival_s: Floats,
    lengths: LengthColumns,
    *,
    contents: Sequence[Content] | None = None,
    priority: Ints | None = None,
    names: Sequence[str] | None = None,
    session: Ints | None = None,
    turn: Ints | None = None,
    tenant: Sequence[str] | None = None,
) -> list[Request]:
    """Return n requests numbered from 0; a column left out takes the request's default."""
    stop: Iterable[Any] = (
        repeat(None) if lengths.stop_after is None else lengths.stop_after.tolist()
    )
    return list(
        map(
            Request,
            range(len(lengths)),
            arrival_s.tolist(),
            lengths.prompt_tokens.tolist(),
            lengths.max_tokens.tolist(),
            stop,
            repeat(None) if contents is None else contents,
            repeat(0) if priority is None else priority.tolist(),
            repeat("") if names is None else names,
            repeat(-1) if session is None else session.tolist(),
            repeat(0) if turn is None else turn.tolist(),
            repeat("") if tenant is None else tenant,
        )
    )
