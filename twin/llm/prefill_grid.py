"""Prefill attention between knots of (query, history): a few multiplications a chunk.

Prompts hardly ever repeat a length, and pricing one from measured tables takes a hundred times as
long as everything else in a step. Attention is linear in the history (the KV before the chunk) and
quadratic in the query; between knots an eighth of an octave apart that is a straight line within
0.1 %.
"""

from bisect import bisect_right

from hwmodels.ops import CostModel
from twin.llm.attention_layers import AttentionLayers
from twin.llm.op_sum import OpSum

_EXACT = 16  # tokens up to which every query is a knot
_TILE = 128  # query rows of a thread block: time jumps after each multiple
_TILED = 8192  # tokens up to which every jump is a pair of knots
_LARGEST = 2**24


def _knots(first: int, per_octave: int, exact: tuple[int, ...]) -> tuple[int, ...]:
    found = set(exact)
    number = 0
    while True:
        knot = round(first * 2 ** (number / per_octave))
        if knot > _LARGEST:
            return tuple(sorted(found))
        found.add(knot)
        number += 1


_TILES = tuple(
    edge for tiles in range(1, _TILED // _TILE + 1) for edge in (tiles * _TILE, tiles * _TILE + 1)
)
QUERIES = tuple(
    knot
    for knot in _knots(_EXACT, 8, (*range(1, _EXACT + 1), *_TILES))
    if not _TILE < knot < _TILED or knot in _TILES
)
HISTORIES = _knots(64, 4, (0,))

Corner = tuple[float, int, int, int]
Cell = tuple[int, float, int, float, float, float, float, float, int, int, int]


class PrefillGrid:
    """Prices chunks by bilinear interpolation over lazily priced corners.

    Args:
        cost_model: prices the corners.
        layers: the attention of one rank.
    """

    def __init__(self, cost_model: CostModel, layers: AttentionLayers) -> None:
        self._cost_model, self._layers = cost_model, layers
        self._corners: dict[tuple[int, int, bool], Corner] = {}
        self._cells: dict[tuple[int, int, bool], Cell] = {}

    def at(self, query: int, kv: int, joined: bool) -> Corner:
        """Return (seconds, bound, source, kernels) of a chunk, all layers.

        Args:
            query: tokens of the chunk.
            kv: KV tokens after it.
            joined: it is not the first chunk of its step.
        """
        history = kv - query
        place = bisect_right(QUERIES, query), bisect_right(HISTORIES, history), joined
        cell = self._cells.get(place)
        if cell is None:
            cell = self._cells[place] = self.cell(place)
        q0, per_q, h0, per_h, base, by_q, by_h, by_both, bound, source, kernels = cell
        u, v = (query - q0) * per_q, (history - h0) * per_h
        return base + by_q * u + (by_h + by_both * u) * v, bound, source, kernels

    def cell(self, place: tuple[int, int, bool]) -> Cell:
        """Return the cell after so many knots of query and history, joined or not."""
        after_q, after_h, joined = place
        q0, q1 = QUERIES[after_q - 1], QUERIES[after_q]
        h0, h1 = HISTORIES[after_h - 1], HISTORIES[after_h]
        c00, bound, source, kernels = self._corner(q0, h0, joined)
        c10, c01 = self._corner(q1, h0, joined)[0], self._corner(q0, h1, joined)[0]
        c11 = self._corner(q1, h1, joined)[0]
        return (
            q0, 1 / (q1 - q0), h0, 1 / (h1 - h0),
            c00, c10 - c00, c01 - c00, c11 - c10 - c01 + c00, bound, source, kernels,
        )  # fmt: skip

    def _corner(self, query: int, history: int, joined: bool) -> Corner:
        corner = self._corners.get((query, history, joined))
        if corner is None:
            ops = self._layers.prefill(query, query + history, joined=joined)
            total = OpSum().add(self._cost_model, ops)
            corner = total.seconds, *total.largest(), total.kernels
            self._corners[query, history, joined] = corner
        return corner
