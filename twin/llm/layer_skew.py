"""What uneven decode lengths cost: between a batch of mean lengths and one of longest lengths.

The authors of the layer profiles timed batches with `b` long and `n - b` short sequences and
fitted, in buckets,

    t = t(all at the mean) + alpha * (t(all at the longest) - t(all at the mean))

Buckets: prefill chunk, sequences, share of long ones as (mean - shortest) / (longest -
shortest), longest KV, and KV before the chunk. A bucket's label names its upper edge.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LABEL = re.compile(r"[a-zA-Z]+(<=|>|=)(\d+)(k?)%?")

Key = tuple[int, int, int, int, int]


class SkewFit:
    """Alpha by bucket.

    Args:
        rows: (prefill chunk, labels of the four other axes) and alpha.
        default: alpha of a bucket without rows.
    """

    def __init__(
        self, rows: Iterable[tuple[int, Sequence[str], float]], default: float = 0.0
    ) -> None:
        parsed = [
            (chunk, [_edge(label) for label in labels], alpha) for chunk, labels, alpha in rows
        ]
        self._chunks = sorted({chunk for chunk, _, _ in parsed})
        self._edges = (
            [sorted({edges[i] for _, edges, _ in parsed}) for i in range(4)] if parsed else []
        )
        self._default = default
        self._alphas: Mapping[Key, float] = {
            (chunk, *(self._edges[i].index(edge) for i, edge in enumerate(edges))): alpha  # type: ignore[misc]
            for chunk, edges, alpha in parsed
        }

    def alpha(self, chunk: float, history: float, lengths: tuple[int, float, int, int]) -> float:
        """Return alpha for (sequences, mean, shortest, longest) decode KV beside a chunk."""
        seqs, mean, shortest, longest = lengths
        if not self._alphas or longest <= shortest:
            return 0.0
        share = 100.0 * (mean - shortest) / (longest - shortest)
        values = (float(seqs), share, float(longest), history)
        places = [
            min(bisect_left(edges, value), len(edges) - 1)
            for edges, value in zip(self._edges, values, strict=True)
        ]
        nearest = min(self._chunks, key=lambda known: abs(known - chunk))
        key = (nearest, places[0], places[1], places[2], places[3])
        return self._alphas.get(key, self._default)

    def alphas(self, seqs: int, means: Floats, shortest: Ints, longest: Ints) -> Floats:
        """Return `alpha` of decode-only steps, shape (n,) as the other arrays."""
        found: Floats = np.zeros(means.size)
        if not self._alphas:
            return found
        shares = 100.0 * (means - shortest) / (longest - shortest)
        places = [
            np.minimum(np.searchsorted(edges, values), len(edges) - 1).tolist()
            for edges, values in zip(self._edges[1:3], (shares, longest), strict=True)
        ]
        steps = list(zip(*places, strict=True))
        starts = [0] + [i for i in range(1, len(steps)) if steps[i] != steps[i - 1]]
        for start, end in zip(starts, [*starts[1:], len(steps)], strict=True):
            lengths = seqs, float(means[start]), int(shortest[start]), int(longest[start])
            found[start:end] = self.alpha(0, 0, lengths)
        return found


def _edge(label: str) -> float:
    """Return the upper edge that `n<=16`, `sr>70%`, `kvB<=4k` or `kp=0` names."""
    match = _LABEL.fullmatch(label)
    if match is None:
        raise ValueError(f"unknown bucket label {label!r}")
    if match.group(1) == ">":
        return float("inf")
    return float(match.group(2)) * (1024 if match.group(3) else 1)
