"""A cost model corrected by a fit to serving runs, and one that remembers what it priced."""

from dataclasses import dataclass, field, replace

from hwmodels.kv_formats import PRICED_AS
from hwmodels.measured.scales import CostScales
from hwmodels.ops import (
    Bound,
    Collective,
    CostModel,
    DecodeAttention,
    ExpertGemm,
    Gemm,
    Op,
    OpCost,
)

WIDE_RANKS = 8
"""All-reduces over so many ranks have a correction of their own."""

MANY_TOKENS = 256
"""Expert products of more tokens have a factor of their own."""

THROTTLED = ("hopper",)
"""Architectures whose clock falls in an engine below that of single kernels: fitted on H100 and
H200. Eager runs on A100 (incident I08) leave no room for such a factor."""

_MOST_SAVED = 0.6
_EIGHT_BIT = ("fp8", "int8")
_FOUR_BIT = ("int4", "mxfp4")


@dataclass(frozen=True, slots=True)
class Corrections:
    """What running in an engine changes about the durations of single kernels.

    Attributes:
        scales: factors by kernel family.
        compute: factor on products and prefill attention that the tensor cores limit: the clock
            falls under a load that no table of single kernels sustains.
        decode_8bit: factor on decode attention over an 8-bit KV cache.
        many_tokens_experts: factor on expert products of more than `MANY_TOKENS` tokens with
            4-bit weights, which engines run with other kernels than the tables hold.
        product_overlap_s: what an 8-bit dense product takes less than in its table, which holds
            launch and quantisation that the engine hides or fuses; at most 60 % of it.
        kernel_gap_s: what passes between a kernel and the next.
        wide_all_reduce_s: what an all-reduce over 8 ranks takes longer.
    """

    scales: CostScales = field(default_factory=CostScales)
    compute: float = 1.0
    decode_8bit: float = 1.0
    many_tokens_experts: float = 1.0
    product_overlap_s: float = 0.0
    kernel_gap_s: float = 0.0
    wide_all_reduce_s: float = 0.0

    def seconds(self, op: Op, cost: OpCost) -> float:
        """Return the corrected duration of an operation, all repeats."""
        seconds = cost.seconds * self.scales.of(type(op))
        if isinstance(op, Gemm | ExpertGemm):
            seconds = self._product(op, seconds)
        elif isinstance(op, DecodeAttention):
            if PRICED_AS.get(op.kv_dtype, op.kv_dtype) in _EIGHT_BIT:
                seconds *= self.decode_8bit
        elif isinstance(op, Collective) and op.ranks == WIDE_RANKS and op.kind == "all_reduce":
            seconds += self.wide_all_reduce_s * op.repeat
        if cost.bound is Bound.COMPUTE:
            seconds *= self.compute
        return seconds + self.kernel_gap_s * cost.kernels

    def _product(self, op: Gemm | ExpertGemm, seconds: float) -> float:
        if isinstance(op, ExpertGemm):
            many = op.tokens > MANY_TOKENS and op.weight_dtype in _FOUR_BIT
            return seconds * (self.many_tokens_experts if many else 1.0)
        if self.product_overlap_s and op.compute_dtype in _EIGHT_BIT:
            hidden_s = self.product_overlap_s * op.repeat
            return max(seconds - hidden_s, (1 - _MOST_SAVED) * seconds)
        return seconds


class ScaledCostModel:
    """Another cost model's durations as corrected by a fit.

    Args:
        base: prices the operations.
        corrections: the fit.
        eager_op_s: the host's time to launch one operation of a compiled step outside CUDA
            graphs; None: as `base`.
        compiled: whether steps are compiled. If not, an operation takes as long as in `base`,
            but no less than a compiled one.
    """

    def __init__(
        self,
        base: CostModel,
        corrections: Corrections,
        eager_op_s: float | None = None,
        *,
        compiled: bool = True,
    ) -> None:
        self.base, self.corrections = base, corrections
        self._eager_op_s, self._compiled = eager_op_s, compiled

    def cost(self, op: Op) -> OpCost:
        """Return the cost of one operation."""
        cost = self.base.cost(op)
        seconds = self.corrections.seconds(op, cost)
        return cost if seconds == cost.seconds else replace(cost, seconds=seconds)

    def launch_floor_s(self, kernels: int, *, graph: bool) -> float:
        """Return the least seconds a step of that many kernels takes to launch."""
        if graph or self._eager_op_s is None:
            return self.base.launch_floor_s(kernels, graph=graph)
        compiled_s = kernels * self._eager_op_s
        if self._compiled:
            return compiled_s
        return max(compiled_s, self.base.launch_floor_s(kernels, graph=False))


class RememberingCostModel:
    """Prices every operation once; for fits, which ask for the same ones again and again."""

    def __init__(self, base: CostModel) -> None:
        self.base = base
        self._known: dict[Op, OpCost] = {}

    def __len__(self) -> int:
        """Return how many prices are remembered."""
        return len(self._known)

    def cost(self, op: Op) -> OpCost:
        """Return the cost of one operation."""
        cost = self._known.get(op)
        if cost is None:
            cost = self._known[op] = self.base.cost(op)
        return cost

    def launch_floor_s(self, kernels: int, *, graph: bool) -> float:
        """Return the least seconds a step of that many kernels takes to launch."""
        return self.base.launch_floor_s(kernels, graph=graph)
