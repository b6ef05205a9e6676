"""Passes of data-parallel ranks that share the experts, from measured layers."""

from collections.abc import Sequence

from hwmodels.ops import Bound
from twin.llm.cuda_graphs import padded
from twin.llm.layer_parts import BF16_BYTES
from twin.llm.layer_sum import LayerSum
from twin.llm.layer_timer import LayerTimer, moe_of
from twin.llm.op_sum import BOUNDS
from twin.llm.step_time import StepTime
from twin.step import BatchShape

_HBM = BOUNDS.index(Bound.HBM)
_NOTHING = BatchShape((), 0, 0, 0, 0)

UNEVEN_SHARE = 0.25
"""How much of the busiest link's excess over even ranks counts in an exchange: 0 if both
directions shared one path, 1 if each had its own at the rate of an even exchange. The only figure
fitted to a serving run: TTFT of the dp = ep = 2 run on two RTX PRO 6000 (0.2 to 0.3 fit alike)."""


class LayerGroupTimer:
    """Times a pass of data-parallel ranks that share out the experts.

    Each layer, a rank's tokens go to all ranks (all-gather of hidden states, weights and ids of
    the chosen experts), every rank computes its own experts for all of them, and the sums come
    back (reduce-scatter): vLLM's `allgather_reducescatter` backend. So each layer waits for
    the slowest rank.

    Args:
        timer: of one rank.
        dp: data-parallel ranks; the experts lie whole on dp × tp GPUs.
    """

    def __init__(self, timer: LayerTimer, dp: int) -> None:
        self._timer, self._dp = timer, dp
        self._local_experts = moe_of(timer.arch).num_experts // (dp * timer.tp)

    def times(self, shapes: Sequence[BatchShape | None]) -> list[StepTime]:
        """See `twin.engine.lockstep.GroupTimer`."""
        timer, layers = self._timer, self._timer.arch.num_layers
        tokens = [1 if shape is None else shape.num_tokens for shape in shapes]
        rows = self._rows(tokens)
        local = [self._local(shape, n) for shape, n in zip(shapes, rows, strict=True)]
        slowest = max(local, key=lambda part: sum(part.by_bound))
        together = LayerSum(slowest.by_bound.copy(), slowest.by_source.copy())
        gathered = sum(rows)
        together.put(layers * timer.experts_s(gathered, gathered, self._local_experts), _HBM)
        self._add_exchange(together, rows)
        found = []
        for shape, n in zip(shapes, rows, strict=True):
            total = LayerSum(together.by_bound.copy(), together.by_source.copy())
            timer.add_ends(total, shape, n)
            found.append(total.step_time())
        return found

    def _rows(self, tokens: Sequence[int]) -> list[int]:
        """Rows each rank computes: all the most padded, or if one has no graph each its own."""
        sizes = [padded(n, self._timer.capture_sizes) for n in tokens]
        captured = [size for size in sizes if size is not None]
        if len(captured) == len(sizes):
            return [max(captured)] * len(sizes)
        return [size or n for size, n in zip(sizes, tokens, strict=True)]

    def _local(self, shape: BatchShape | None, rows: int) -> LayerSum:
        total = LayerSum.empty()
        # A dummy pass runs every layer but attention.
        self._timer.add_local(total, shape or _NOTHING, rows)
        return total

    def _add_exchange(self, total: LayerSum, rows: Sequence[int]) -> None:
        """Add all-gather and reduce-scatter of every layer.

        Even ranks load all links alike. If they are uneven, the rank with fewest rows receives
        most: that link decides, but has the path to itself for longer.
        """
        arch, moe, ranks = self._timer.arch, moe_of(self._timer.arch), len(rows)
        gathered = sum(rows)
        busiest = ranks * (gathered - min(rows)) / (ranks - 1)
        carried = gathered + UNEVEN_SHARE * (busiest - gathered)
        hidden_bytes = arch.hidden_size * BF16_BYTES
        choice_bytes = 8 * moe.experts_per_token  # a float and an int an expert chosen
        for kind, row_bytes in (
            ("all_gather", hidden_bytes + choice_bytes),
            ("reduce_scatter", hidden_bytes),
        ):
            self._timer.add_collective(total, kind, carried * row_bytes, ranks, arch.num_layers)
