"""Grouped expert products: which experts wake, and what streaming their weights costs.

The kernels themselves have no public fit of this form, so the dense GEMM's parameters stand in
and the source is `EXTRAPOLATED`.
"""

import math

from hwmodels.dtypes import WEIGHT_BYTES
from hwmodels.efficiency import FP8_GEMM_SPEEDUP, GemmFit
from hwmodels.gemm import GemmShape, quantised_compute, tile_time
from hwmodels.interpolate import log_interpolate
from hwmodels.ops import Bound, ExpertGemm, OpCost, Source
from hwmodels.spec import GpuSpec

KERNELS = 2  # gate and up in one grouped product, down in another


def expected_active_experts(
    tokens: float, num_experts: int, experts_per_token: int, local_experts: int
) -> float:
    """Return how many of a rank's experts at least one token picks, under uniform routing.

    One token misses a given expert with probability 1 - k/E; real routing is skewed, which
    wakes fewer experts and loads them unevenly.
    """
    missed = (1 - experts_per_token / num_experts) ** tokens
    return float(local_experts * (1 - missed))


def expert_cost(op: ExpertGemm, fit: GemmFit, gpu: GpuSpec) -> OpCost:
    """Return the cost of both grouped products over all repeats.

    An active expert sees the mean of its routed tokens; its weights stream once.
    """
    active = expected_active_experts(
        op.tokens, op.num_experts, op.experts_per_token, op.local_experts
    )
    if active <= 0:
        return OpCost(0.0, Bound.HBM, Source.EXTRAPOLATED, 0)
    routed = op.tokens * op.experts_per_token * op.local_experts / op.num_experts
    rows = max(1, math.ceil(routed / active))
    fast = quantised_compute(op.compute_dtype, gpu)
    weight_bytes = 2.0 if fast else WEIGHT_BYTES[op.weight_dtype]
    first = tile_time(GemmShape(rows, op.gated_n, op.hidden, active, weight_bytes), fit, gpu)
    second = tile_time(GemmShape(rows, op.hidden, op.intermediate, active, weight_bytes), fit, gpu)
    seconds = first.seconds + second.seconds
    if fast:
        seconds /= log_interpolate(rows, FP8_GEMM_SPEEDUP)
    bound = first.bound if first.seconds >= second.seconds else second.bound
    return OpCost(seconds * op.repeat, bound, Source.EXTRAPOLATED, KERNELS * op.repeat)
