"""Global multipliers by kernel family, for a fit to set per engine."""

from dataclasses import dataclass

from hwmodels.ops import (
    Collective,
    DecodeAttention,
    Elementwise,
    ExpertGemm,
    Gemm,
    Op,
    PrefillAttention,
)


@dataclass(frozen=True, slots=True)
class CostScales:
    """Factors on the seconds of each kernel family; 1 is what the tables and physics say."""

    gemm: float = 1.0
    prefill: float = 1.0
    decode: float = 1.0
    collective: float = 1.0
    elementwise: float = 1.0
    experts: float = 1.0

    def of(self, op: type[Op]) -> float:
        """Return the factor of an operation type; sampling counts as elementwise."""
        factors = {
            Gemm: self.gemm,
            ExpertGemm: self.experts,
            PrefillAttention: self.prefill,
            DecodeAttention: self.decode,
            Collective: self.collective,
            Elementwise: self.elementwise,
        }
        return factors.get(op, self.elementwise)
