"""The L2: two segments, what each can hold, and how long a hit takes."""

import math
from typing import Literal

from hwmodels.memory.fits import MemoryFit
from hwmodels.spec import GpuSpec

Sharing = Literal["replicated", "private"]

PRIVATE_SHARE = 0.8
"""Of the whole L2, what streams of single SMs keep: inferred from knees in public logs."""

RAMP = 0.1
"""Latency goes from one plateau to the next over this share of a capacity, on either side."""

_WARM_THRESHOLD, _WARM_WIDTH = 0.95, 0.08  # as the warm branch of `hwmodels.attention` was fitted


def effective_bytes(gpu: GpuSpec, sharing: Sharing) -> float:
    """Return what the L2 holds of data that all SMs read, or that single SMs do.

    What all read (weights) lies in every segment; KV of different sequences lies once.
    """
    if sharing == "replicated":
        return gpu.l2_bytes / gpu.l2_segments
    return PRIVATE_SHARE * gpu.l2_bytes


def stays_warm(gpu: GpuSpec, bytes_per_step: float) -> bool:
    """Whether KV of a layer survives until the next step: if all that a step reads fits.

    In serving it doesn't; kernels measured alone find it there.
    """
    return bytes_per_step < effective_bytes(gpu, "private")


def warm_share(kv_bytes: float, gpu: GpuSpec) -> float:
    """Return the share of KV found in the L2 when one kernel runs again and again."""
    room = (_WARM_THRESHOLD * gpu.l2_bytes - kv_bytes) / (_WARM_WIDTH * gpu.l2_bytes)
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, room))))


def held_share(footprint_bytes: float, capacity_bytes: float) -> float:
    """Return the share of a pointer chase that a cache serves: 1 below, 0 above its capacity.

    A chase comes round to every line in turn, so LRU keeps all of it or none; hashing and
    replacement blur the edge.
    """
    low, high = (1 - RAMP) * capacity_bytes, (1 + RAMP) * capacity_bytes
    return min(1.0, max(0.0, (high - footprint_bytes) / (high - low)))


def near_share(footprint_bytes: float, gpu: GpuSpec) -> float:
    """Return the share of a chase's L2 hits that the near segment answers.

    Up to one segment lines are found there; beyond, each is fetched from its home across the
    chip. An L2 in one piece has no far half.
    """
    if gpu.l2_segments == 1:
        return 1.0
    return held_share(footprint_bytes, effective_bytes(gpu, "replicated"))


def hit_cycles(footprint_bytes: float, fit: MemoryFit, gpu: GpuSpec) -> float | None:
    """Return the mean latency of L2 hits in a chase; None: nobody measured it."""
    near, far = fit.l2_near_cycles, fit.l2_far_cycles
    if near is None:
        return None
    beyond = 1 - near_share(footprint_bytes, gpu)
    if not beyond:
        return near
    return None if far is None else near + beyond * (far - near)
