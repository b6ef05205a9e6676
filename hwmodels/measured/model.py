"""`MeasuredCostModel`: durations of one GPU under one engine version, from its profile."""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from hwmodels.efficiency import Efficiency, efficiency_of
from hwmodels.elementwise import elementwise_cost, sampling_cost
from hwmodels.launch import launch_floor_s
from hwmodels.measured.attention import MeasuredDecode, MeasuredPrefill
from hwmodels.measured.collectives import MeasuredCollectives
from hwmodels.measured.experts import MeasuredExperts
from hwmodels.measured.fa2_decode import Fa2DecodeFit
from hwmodels.measured.gemm import MeasuredGemm
from hwmodels.measured.scales import CostScales
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
from hwmodels.profile import HardwareProfile, ProfileError
from hwmodels.spec import GpuSpec


class MeasuredCostModel:
    """Physics forms times what measured tables say beyond them.

    Args:
        profile: of kind `kernels`, measured on this GPU.
        gpu: facts of the part.
        scales: factors by kernel family, as a fit to an engine's runs sets them.
        fp8_kernel: which of the profile's FP8 kernels serves: "fp8" or "fp8_block".
        fp8_expert_kernel: the same for experts; None: as `fp8_kernel`.
        as_measured: price decode attention as the tables were measured, with KV left in the L2;
            for judging against them, never for serving.

    Raises:
        ProfileError: the profile is of another kind or another GPU.
    """

    def __init__(
        self,
        profile: HardwareProfile,
        gpu: GpuSpec,
        scales: CostScales | None = None,
        *,
        fp8_kernel: str = "fp8",
        fp8_expert_kernel: str | None = None,
        as_measured: bool = False,
    ) -> None:
        if profile.kind != "kernels" or profile.gpu != gpu.name:
            raise ProfileError(
                f"profile {profile.name}: holds {profile.kind} of {profile.gpu}, "
                f"asked for kernels of {gpu.name}"
            )
        self.profile, self.gpu, self.scales = profile, gpu, scales or CostScales()
        self.fp8_kernel = fp8_kernel
        self.efficiency = fitted_efficiency(profile, gpu)
        fit, tables = self.efficiency, profile.tables
        self.gemm = MeasuredGemm(tables, fit.gemm, gpu, fp8_kernel)
        self.experts = MeasuredExperts(tables, fit.gemm, gpu, fp8_expert_kernel or fp8_kernel)
        self.prefill = MeasuredPrefill(tables, fit.prefill, gpu)
        fa2 = profile.parameters.get("decode_fa2")
        self.decode = MeasuredDecode(
            tables,
            fit.decode,
            gpu,
            fit.prefill.tensor,
            fa2=None if fa2 is None else Fa2DecodeFit(**fa2),
            table_l2=profile.facts.get("decode_l2", "warm"),
            as_measured=as_measured,
        )
        self.collectives = MeasuredCollectives(
            tables,
            profile.parameters.get("collectives", {}),
            profile.parameters.get("engine_all_reduce_limit_bytes", 0),
            gpu,
        )
        self._by_type: dict[type[Op], Callable[[Any], OpCost]] = {
            Gemm: self.gemm.cost,
            ExpertGemm: self.experts.cost,
            PrefillAttention: self.prefill.cost,
            DecodeAttention: self.decode.cost,
            Elementwise: lambda op: elementwise_cost(op, fit.stream, gpu),
            Collective: self.collectives.cost,
            Sampling: lambda op: sampling_cost(op, fit.stream, gpu),
        }
        self._factors = {kind: self.scales.of(kind) for kind in self._by_type}

    def cost(self, op: Op) -> OpCost:
        """Return the cost of one operation."""
        cost = self._by_type[type(op)](op)
        factor = self._factors[type(op)]
        return cost if factor == 1.0 else replace(cost, seconds=cost.seconds * factor)

    def launch_floor_s(self, kernels: int, *, graph: bool) -> float:
        """Return the least seconds a step of that many kernels takes to launch."""
        return launch_floor_s(kernels, self.efficiency.launch, graph=graph)


def fitted_efficiency(profile: HardwareProfile, gpu: GpuSpec) -> Efficiency:
    """Return the GPU's efficiencies with those that the profile fitted anew in their place."""
    efficiency = efficiency_of(gpu)
    fitted: dict[str, Any] = {}
    for family in ("gemm", "prefill", "decode", "launch"):
        given = profile.parameters.get(family)
        if given is None:
            continue
        start = getattr(efficiency, family)
        known = {field.name for field in fields(start)}
        # JSON has no infinity: a hard maximum (p_norm) is stored as null.
        values = {
            name: math.inf if value is None else value
            for name, value in given.items()
            if name in known
        }
        fitted[family] = replace(start, **values, fitted_on=gpu.name, measured=True)
    stream = profile.parameters.get("stream")
    if stream is not None:
        fitted.update(stream=float(stream), stream_measured=True)
    return replace(efficiency, **fitted)
