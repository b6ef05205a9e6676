"""A cost model with factors on its kernel families, and one that remembers what it priced."""

from dataclasses import replace

from hwmodels.measured.scales import CostScales
from hwmodels.ops import CostModel, Gemm, Op, OpCost

_MOST_SAVED = 0.6


class ScaledCostModel:
    """Another cost model's durations times the factors of a fit.

    Args:
        base: prices the operations.
        scales: factors by kernel family.
        eager_op_s: the host's time to launch one operation outside CUDA graphs; None: as `base`.
        product_overlap_s: what a dense product saves of its table's time, since the table holds
            launch and quantisation that an engine hides or fuses; at most `_MOST_SAVED` of it.
    """

    def __init__(
        self,
        base: CostModel,
        scales: CostScales,
        eager_op_s: float | None = None,
        product_overlap_s: float = 0.0,
    ) -> None:
        self.base, self.scales, self._eager_op_s = base, scales, eager_op_s
        self._overlap_s = product_overlap_s

    def cost(self, op: Op) -> OpCost:
        """Return the cost of one operation."""
        cost, factor = self.base.cost(op), self.scales.of(type(op))
        seconds = cost.seconds * factor
        if self._overlap_s and isinstance(op, Gemm):
            hidden_s = self._overlap_s * op.repeat
            seconds = max(seconds - hidden_s, (1 - _MOST_SAVED) * seconds)
        return cost if seconds == cost.seconds else replace(cost, seconds=seconds)

    def launch_floor_s(self, kernels: int, *, graph: bool) -> float:
        """Return the least seconds a step of that many kernels takes to launch."""
        if graph or self._eager_op_s is None:
            return self.base.launch_floor_s(kernels, graph=graph)
        return kernels * self._eager_op_s


class RememberingCostModel:
    """Prices every operation once; for fits, which ask for the same ones again and again."""

    def __init__(self, base: CostModel) -> None:
        self.base = base
        self._known: dict[Op, OpCost] = {}

    def cost(self, op: Op) -> OpCost:
        """Return the cost of one operation."""
        cost = self._known.get(op)
        if cost is None:
            cost = self._known[op] = self.base.cost(op)
        return cost

    def launch_floor_s(self, kernels: int, *, graph: bool) -> float:
        """Return the least seconds a step of that many kernels takes to launch."""
        return self.base.launch_floor_s(kernels, graph=graph)
