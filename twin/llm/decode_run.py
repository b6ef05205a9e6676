"""Durations of a run of decode steps in arrays, bit for bit as `StepTimer.time` gives them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twin.llm.step_time import DecodePiece, StepTimer

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DecodeRun:
    """Consecutive decode-only steps of one batch.

    Attributes:
        seconds: of each step, shape (n,).
        bound: index into `BOUNDS` of what limits each, shape (n,).
        by_source: (index into `SOURCES`, seconds of each step) of those that aren't zero.
    """

    seconds: Floats
    bound: NDArray[np.int64]
    by_source: tuple[tuple[int, Floats], ...]


def decode_run(timer: StepTimer, seqs: int, first_kv: int, steps: int) -> DecodeRun:
    """Return `steps` steps of `seqs` decodes, over `first_kv`, `first_kv + seqs`, … KV tokens."""
    parts: list[DecodeRun] = []
    kv, left = first_kv, steps
    while left:
        piece = timer.decode_piece(seqs, kv)
        count = min(left, (piece.last_kv - kv) // seqs + 1)
        parts.append(_part(piece, np.arange(kv, kv + count * seqs, seqs)))
        kv, left = kv + count * seqs, left - count
    if len(parts) == 1:
        return parts[0]
    sources = sorted({index for part in parts for index, _ in part.by_source})
    return DecodeRun(
        np.concatenate([part.seconds for part in parts]),
        np.concatenate([part.bound for part in parts]),
        tuple((i, np.concatenate([_of_source(part, i) for part in parts])) for i in sources),
    )


def _of_source(part: DecodeRun, source: int) -> Floats:
    found = [seconds for index, seconds in part.by_source if index == source]
    return found[0] if found else np.zeros_like(part.seconds)


def _part(piece: DecodePiece, kv: NDArray[np.int64]) -> DecodeRun:
    """The steps over those KV tokens, all on one line of attention."""
    grows_s: Floats = np.asarray(piece.slope_s * kv, dtype=np.float64)
    attention_s: Floats = piece.attention_base_s + grows_s
    seconds: Floats = piece.base_s + grows_s
    bound = _bounds(piece, attention_s)
    sources: dict[int, Floats] = {
        index: np.full(kv.size, share) for index, share in enumerate(piece.by_source) if share
    }
    sources[piece.source] = piece.by_source[piece.source] + attention_s
    launched_s = piece.launch_base_s + piece.launch_slope_s * kv
    waits = seconds < launched_s
    if waits.any():
        extra_s = np.where(waits, launched_s - seconds, 0.0)
        physics = piece.launch_source
        sources[physics] = sources.get(physics, np.zeros(kv.size)) + extra_s
        seconds = np.where(waits, launched_s, seconds)
        bound = np.where(waits, piece.launch_bound, bound)
    return DecodeRun(seconds, bound, tuple(sorted(sources.items())))


def _bounds(piece: DecodePiece, attention_s: Floats) -> NDArray[np.int64]:
    """The largest share of each step, the first of equal ones."""
    own = piece.bound
    others = [(share, -index) for index, share in enumerate(piece.by_bound) if index != own]
    largest, place = max(others)
    mine = piece.by_bound[own] + attention_s
    wins = mine > largest if own > -place else mine >= largest
    return np.where(wins, own, -place)
