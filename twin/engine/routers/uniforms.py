"""Uniform random numbers one at a time, drawn many at a time."""

import numpy as np

_AT_ONCE = 1024


class Uniforms:
    """Numbers of one stream, the same however many are drawn at once.

    Args:
        rng: the stream.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._drawn: list[float] = []

    def below(self, bound: int) -> int:
        """Return a whole number from 0 to `bound - 1`."""
        if not self._drawn:
            self._drawn = self._rng.random(_AT_ONCE).tolist()
            self._drawn.reverse()
        return int(self._drawn.pop() * bound)
