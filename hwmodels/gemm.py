"""Dense products: tiles, waves and split-K over a roofline.

The form, fitted on public tables of bf16 GEMM, errs by 6.5/21.0/45 % on A100 and 5.2/16.7/36 %
on H100 (median/P90/P99 of held-out rows), by about the same on shapes it never saw.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwmodels.dtypes import WEIGHT_BYTES
from hwmodels.efficiency import FP8_GEMM_SPEEDUP, GemmFit
from hwmodels.interpolate import log_interpolate
from hwmodels.ops import Bound, Gemm, OpCost, Source
from hwmodels.spec import GpuSpec

TILES = (
    (64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (256, 128), (64, 256),
    (16, 64), (32, 64), (16, 128), (32, 128),
)  # fmt: skip
SPLITS = (1, 2, 4, 8)
_ACTIVATION_BYTES = 2.0
_MIN_SPLIT_K = 64

_Array = NDArray[np.float64]
# Every tile under every split, as columns; the first splits are all 1.
_CANDIDATES = np.array([(m, n, split) for split in SPLITS for m, n in TILES], dtype=np.float64)
_TILE_M, _TILE_N, _SPLIT = (np.ascontiguousarray(column) for column in _CANDIDATES.T)
_TILE_AREA = _TILE_M * _TILE_N
_IS_SPLIT = (_SPLIT > 1).astype(np.float64)
# FP32 partial results, written and read once for each part of a split.
_PARTIALS = 8 * _SPLIT * _IS_SPLIT


@dataclass(frozen=True, slots=True)
class GemmShape:
    """`groups` products (m×k)·(k×n) in one kernel; `weight_bytes` is what an element takes."""

    m: float
    n: int
    k: int
    groups: float = 1.0
    weight_bytes: float = 2.0


@dataclass(frozen=True, slots=True)
class GemmTime:
    """Seconds of one kernel, and of its compute, memory and fixed parts taken alone."""

    seconds: float
    compute_s: float
    memory_s: float
    fixed_s: float

    @property
    def bound(self) -> Bound:
        """The largest part."""
        if self.fixed_s >= max(self.compute_s, self.memory_s):
            return Bound.LAUNCH
        return Bound.COMPUTE if self.compute_s >= self.memory_s else Bound.HBM


def tile_time(shape: GemmShape, fit: GemmFit, gpu: GpuSpec) -> GemmTime:
    """Return the time of the best tile and split.

    Compute takes whole waves of tiles. Memory moves activations in, weights once, results out.
    Every tile also reads its operands through L2; that traffic counts as compute, since it
    feeds the tensor cores and grows with the tiles.
    """
    sms, hbm = gpu.num_sms, fit.memory * gpu.hbm_bytes_per_s
    rate = fit.tensor * gpu.flops_per_s["bf16"] / sms
    results = shape.groups * shape.m * shape.n
    moved = shape.groups * shape.k * (
        shape.m * _ACTIVATION_BYTES + shape.n * shape.weight_bytes
    ) + (_ACTIVATION_BYTES * results)
    tiles = shape.groups * np.ceil(shape.m / _TILE_M) * np.ceil(shape.n / _TILE_N)
    blocks = tiles * _SPLIT
    waves = np.ceil(blocks / sms)
    depth = np.maximum(shape.k / _SPLIT, _MIN_SPLIT_K)
    active = np.minimum(blocks / sms, 1.0)
    tensor_s = waves * depth * _TILE_AREA * (2 / rate)
    memory_s = (active + fit.saturation) / active * (moved / (hbm * (1 + fit.saturation)))
    operands = _TILE_M * _ACTIVATION_BYTES + _TILE_N * shape.weight_bytes
    l2_s = blocks * depth * operands / (fit.l2_bytes_per_s * active)
    fixed_s = fit.wave_s * waves + _IS_SPLIT * fit.split_s + _PARTIALS * (results / hbm)
    total_s = _join(tensor_s, memory_s, l2_s, fit.p_norm) + fixed_s
    best = int(total_s.argmin())
    return GemmTime(
        seconds=fit.t0_s + float(total_s[best]),
        compute_s=float(max(tensor_s[best], l2_s[best])),
        memory_s=float(memory_s[best]),
        fixed_s=fit.t0_s + float(fixed_s[best]),
    )


def _join(first: _Array, second: _Array, third: _Array, p_norm: float) -> _Array:
    largest: _Array = np.maximum(np.maximum(first, second), third)
    if p_norm == math.inf:
        return largest
    ratios = (first / largest) ** p_norm + (second / largest) ** p_norm
    joined: _Array = largest * (ratios + (third / largest) ** p_norm) ** (1 / p_norm)
    return joined


def quantised_compute(compute_dtype: str, gpu: GpuSpec) -> bool:
    """Return whether 8-bit tensor cores serve this product; else weights are unpacked to bf16.

    A100 has none for FP8, so FP8 there is weight-only. 4-bit weights are always unpacked:
    kernels that multiply in 4 bits have no public measurement to lean on.
    """
    return compute_dtype in ("fp8", "int8") and compute_dtype in gpu.flops_per_s


def gemm_cost(op: Gemm, fit: GemmFit, gpu: GpuSpec) -> OpCost:
    """Return the cost of a dense product, all repeats.

    8-bit compute is the bf16 time over the median speed-up of its range of m: the speed-up is
    no constant (1.03 around m = 400, 1.4 at both ends), and INT8 takes FP8's for want of its own.
    """
    if op.m <= 0:
        return OpCost(0.0, Bound.COMPUTE, Source.PHYSICS, 0)
    fast = quantised_compute(op.compute_dtype, gpu)
    weight_bytes = 2.0 if fast else WEIGHT_BYTES[op.weight_dtype]
    time = tile_time(GemmShape(op.m, op.n, op.k, 1.0, weight_bytes), fit, gpu)
    seconds = time.seconds / log_interpolate(op.m, FP8_GEMM_SPEEDUP) if fast else time.seconds
    source = Source.PHYSICS if fit.measured else Source.EXTRAPOLATED
    return OpCost(seconds * op.repeat, time.bound, source, op.repeat)
