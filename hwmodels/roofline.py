"""The first cost model: datasheet facts, and what kernels were measured to reach of them."""

from collections.abc import Callable
from typing import Any

from hwmodels.attention import decode_cost, prefill_cost
from hwmodels.collectives import collective_cost
from hwmodels.efficiency import EFFICIENCIES, Efficiency
from hwmodels.elementwise import elementwise_cost, sampling_cost
from hwmodels.gemm import gemm_cost
from hwmodels.launch import launch_floor_s
from hwmodels.moe import expert_cost
from hwmodels.ops import (
    Collective,
    DecodeAttention,
    Elementwise,
    ExpertGemm,
    Gemm,
    Op,
    OpCost,
    PrefillAttention,
    Sampling,
)
from hwmodels.spec import GpuSpec


class RooflineCostModel:
    """Physics forms over a GPU's facts with its (or its lender's) fitted efficiencies.

    Args:
        gpu: facts of the part.
        efficiency: its fits; the table's own entry by default.
    """

    def __init__(self, gpu: GpuSpec, efficiency: Efficiency | None = None) -> None:
        self.gpu = gpu
        self.efficiency = efficiency or EFFICIENCIES[gpu.name]
        fit, stream = self.efficiency, self.efficiency.stream
        self._by_type: dict[type, Callable[[Any], OpCost]] = {
            Gemm: lambda op: gemm_cost(op, fit.gemm, gpu),
            ExpertGemm: lambda op: expert_cost(op, fit.gemm, gpu),
            PrefillAttention: lambda op: prefill_cost(op, fit.prefill, gpu),
            DecodeAttention: lambda op: decode_cost(op, fit.decode, gpu, fit.prefill.tensor),
            Elementwise: lambda op: elementwise_cost(op, stream, gpu),
            Collective: lambda op: collective_cost(op, gpu),
            Sampling: lambda op: sampling_cost(op, stream, gpu),
        }

    def cost(self, op: Op) -> OpCost:
        """Return the cost of one operation."""
        return self._by_type[type(op)](op)

    def launch_floor_s(self, kernels: int, *, graph: bool) -> float:
        """Return the least seconds a step of that many kernels takes to launch."""
        return launch_floor_s(kernels, self.efficiency.launch, graph=graph)
