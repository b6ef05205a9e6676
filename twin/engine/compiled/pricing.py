"""How long a step takes (`twin.llm.step_time.StepTimer`), from prices filled in as they are met.

Each function that may miss a price says which in the counters and returns -1: the caller lets
Python fill it in and asks again.
"""

import math
from typing import Any

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import NEED, NEED_A, NEED_B, NEED_C, NEED_D
from twin.engine.compiled.memory import (
    counters,
    piece_of,
    pieces,
    sources,
)
from twin.llm.decode_piece import LAUNCH as _LAUNCH
from twin.llm.decode_piece import PHYSICS as _PHYSICS
from twin.llm.step_time import FIRST_KNOT as _FIRST_KNOT
from twin.llm.step_time import KNOTS_PER_OCTAVE as _KNOTS_PER_OCTAVE

BODY, HEAD, LINE, PIECE, CELL, FLOOR, WHOLE = range(1, 8)
"""What may be missing: see `twin.engine.compiled.prices`."""

KNOTS = 128
"""Knots an index has room for: mean contexts of up to four thousand million tokens."""

MOST_KERNELS = 32768


@compiled
def need(s: Any, kind: int, a: int, b: int, c: int) -> None:
    """Say what price is missing."""
    counters(s)[NEED] = kind
    counters(s)[NEED_A], counters(s)[NEED_B], counters(s)[NEED_C] = a, b, c
    counters(s)[NEED_D] = 0


@compiled
def knot_of(mean_tokens: float) -> int:
    """Return the number of the knot at or below a mean context (`StepTimer`)."""
    if mean_tokens < 16:
        return _FIRST_KNOT - 1
    return int(_KNOTS_PER_OCTAVE * math.log2(mean_tokens))


@compiled
def piece_at(s: Any, seqs: int, kv_tokens: int) -> int:
    """Return the row of the line that decode-only steps of a batch are on."""
    knot = knot_of(kv_tokens / seqs)
    row = piece_of(s)[seqs, knot]
    if row < 0:
        need(s, PIECE, seqs, knot, kv_tokens)
    return row


@compiled
def waits(piece: Any, kv_tokens: int) -> bool:
    """Whether launching a step takes longer than running it (`DecodePiece.short_s`)."""
    launched_s = piece.launch_base_s + piece.launch_slope_s * kv_tokens
    return launched_s - (piece.base_s + piece.slope_s * kv_tokens) > 0


@compiled
def decode_seconds(piece: Any, kv_tokens: int) -> float:
    """Return what a decode-only step takes."""
    seconds = piece.base_s + piece.slope_s * kv_tokens
    launched_s = piece.launch_base_s + piece.launch_slope_s * kv_tokens
    return launched_s if seconds < launched_s else seconds


@compiled
def decode_bound(piece: Any, kv_tokens: int) -> int:
    """Return what limits a decode-only step (`DecodePiece.bound_at`)."""
    if waits(piece, kv_tokens):
        return _LAUNCH
    best, most = 0, -1.0
    for index in range(4):
        share = piece.by_bound[index]
        if index == piece.bound:
            share = share + (piece.attention_base_s + piece.slope_s * kv_tokens)
        if share > most:
            best, most = index, share
    return best


@compiled
def decodes(s: Any, r: int, seqs: int, kv_tokens: int) -> tuple[float, int]:
    """Return (seconds, bound) of a decode-only step; -1: a price is missing."""
    row = piece_at(s, seqs, kv_tokens)
    if row < 0:
        return -1.0, 0
    piece = pieces(s)[row]
    for index in range(4):
        sources(s)[r, index] += piece.by_source[index]
    seconds = piece.base_s + piece.slope_s * kv_tokens
    sources(s)[r, piece.source] += piece.attention_base_s + piece.slope_s * kv_tokens
    taken_s = decode_seconds(piece, kv_tokens)
    sources(s)[r, _PHYSICS] += taken_s - seconds
    return taken_s, decode_bound(piece, kv_tokens)
