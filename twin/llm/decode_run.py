"""Durations of a run of decode steps in arrays, bit for bit as `StepTimer.time` gives them."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from twin.llm.decode_piece import DecodePiece

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class DecodeTimes(Protocol):
    """What is known ahead of consecutive decode-only steps of one batch.

    Attributes:
        seconds: of each step, shape (steps,).
    """

    seconds: Floats

    def bound(self, steps: int) -> int | Ints:
        """Return what limits each of the first steps: one number if it is the same for all."""
        ...

    def by_source(self, steps: int) -> list[float]:
        """Return the seconds of the first steps by how they were obtained, to the last few bits."""
        ...


class PieceTimer(Protocol):
    """A timer whose decode steps lie on lines."""

    def decode_piece(self, seqs: int, kv_tokens: int) -> DecodePiece:
        """Return the line from here on."""
        ...


@dataclass(slots=True)
class DecodePart:
    """Consecutive decode-only steps of one batch on one line of attention.

    Attributes:
        piece: the line.
        kv_tokens: of the first step.
        seqs: by which the KV grows with each step.
        steps: how many.
    """

    piece: DecodePiece
    kv_tokens: int
    seqs: int
    steps: int

    def seconds(self) -> Floats:
        """Return what each step takes, shape (steps,)."""
        piece, last = self.piece, self.kv_tokens + self.steps * self.seqs
        kv = np.arange(self.kv_tokens, last, self.seqs)
        seconds: Floats = np.asarray(piece.base_s + piece.slope_s * kv, dtype=np.float64)
        if not piece.never_waits:
            launched_s = piece.launch_base_s + piece.launch_slope_s * kv
            seconds = np.where(seconds < launched_s, launched_s, seconds)
        return seconds

    def bound(self, steps: int) -> int | Ints:
        """Return what limits each of the first steps: one number if it is the same."""
        piece = self.piece
        if piece.only_bound is not None:
            return piece.only_bound
        last = self.kv_tokens + steps * self.seqs
        found = [piece.bound_at(kv) for kv in range(self.kv_tokens, last, self.seqs)]
        return np.array(found, dtype=np.int64)

    def by_source(self, steps: int) -> list[float]:
        """Return the seconds of the first steps by source, to the last few bits."""
        piece = self.piece
        found = [steps * share for share in piece.by_source]
        kv_sum = steps * self.kv_tokens + self.seqs * (steps * (steps - 1) // 2)
        found[piece.source] += steps * piece.attention_base_s + piece.slope_s * kv_sum
        if not piece.never_waits:
            last = self.kv_tokens + steps * self.seqs
            for kv in range(self.kv_tokens, last, self.seqs):
                found[piece.launch_source] += max(0.0, piece.short_s(kv))
        return found


class DecodeRun:
    """Consecutive decode-only steps of one batch.

    Args:
        timer: times its steps.
        seqs: sequences that decode.
        first_kv: KV tokens of the first step; each further one has `seqs` more.
        steps: how many.

    Attributes:
        seconds: of each step, shape (steps,).
    """

    __slots__ = ("_parts", "seconds")

    def __init__(self, timer: PieceTimer, seqs: int, first_kv: int, steps: int) -> None:
        self._parts: list[DecodePart] = []
        kv, left = first_kv, steps
        while left:
            piece = timer.decode_piece(seqs, kv)
            count = min(left, (piece.last_kv - kv) // seqs + 1)
            self._parts.append(DecodePart(piece, kv, seqs, count))
            kv, left = kv + count * seqs, left - count
        parts = [part.seconds() for part in self._parts]
        self.seconds: Floats = parts[0] if len(parts) == 1 else np.concatenate(parts)

    def bound(self, steps: int) -> int | Ints:
        """Return what limits each of the first steps: one number if it is the same for all."""
        found = [part.bound(count) for part, count in self._first(steps)]
        if all(isinstance(bound, int) for bound in found) and len(set(found)) == 1:
            return found[0]
        counts = [count for _, count in self._first(steps)]
        full = [np.broadcast_to(b, c) for b, c in zip(found, counts, strict=True)]
        bounds: Ints = np.concatenate(full).astype(np.int64)
        return bounds

    def by_source(self, steps: int) -> list[float]:
        """Return the seconds of the first steps by how they were obtained."""
        sums = [part.by_source(count) for part, count in self._first(steps)]
        return [sum(column) for column in zip(*sums, strict=True)]

    def _first(self, steps: int) -> list[tuple[DecodePart, int]]:
        found = []
        for part in self._parts:
            if steps <= 0:
                break
            found.append((part, min(steps, part.steps)))
            steps -= part.steps
        return found
