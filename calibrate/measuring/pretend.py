"""Seconds that nobody measured, for a dry run: the physics cost model, and noise.

Kernels cost what the roofline says of the GPU that is pretended. Probes have forms of their own,
just good enough that fits have plateaus, knees and slopes to find.
"""

import math
import zlib
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from calibrate.measuring.item import Item
from hwmodels.attention import decode_cost, prefill_cost
from hwmodels.dtypes import KV_BYTES
from hwmodels.efficiency import EFFICIENCIES, Efficiency, LaunchFit
from hwmodels.elementwise import elementwise_cost
from hwmodels.gemm import gemm_cost
from hwmodels.measured.tables import kernel_of
from hwmodels.ops import DecodeAttention, Elementwise, Gemm, PrefillAttention
from hwmodels.spec import GpuSpec

REPETITIONS = 20
NOISE = 0.03
"""Of the logarithm of an item's seconds; single launches spread by a third of it."""

Shape = Mapping[str, int]


def pretended(item: Item, gpu: GpuSpec, seed: int) -> NDArray[np.float64]:
    """Return seconds of `REPETITIONS` launches of an item; the same for the same seed."""
    name = f"{item.table}{sorted(item.shape.items())}{item.l2}"
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    kernel = kernel_of(item.table)
    fit = EFFICIENCIES[gpu.name]
    form = _FORMS.get(kernel)
    seconds = form(item, gpu, fit) if form else _PROBES.get(kernel, _unknown)(item.shape, gpu, fit)
    noise = random.normal(0, NOISE) + random.normal(0, NOISE / 3, REPETITIONS)
    return np.asarray(seconds * np.exp(noise), dtype=np.float64)


def _gemm(item: Item, gpu: GpuSpec, fit: Efficiency) -> float:
    s, variant = item.shape, item.table.partition(".")[2]
    compute = "fp8" if variant == "fp8" else "bf16"
    return gemm_cost(Gemm(s["m"], s["n"], s["k"], compute, variant), fit.gemm, gpu).seconds


def _prefill(item: Item, gpu: GpuSpec, fit: Efficiency) -> float:
    s, dim = item.shape, int(item.table.split(".")[1])
    heads, kv_heads = s["heads"] * s["batch"], s["kv_heads"] * s["batch"]
    query = s.get("query", s["length"])
    op = PrefillAttention(query, s["length"], heads, kv_heads, dim, dim)
    return prefill_cost(op, fit.prefill, gpu).seconds


def _decode(item: Item, gpu: GpuSpec, fit: Efficiency) -> float:
    _, head, kind = item.table.split(".")
    return _decode_s(item.shape, int(head), kind, gpu, fit, warm=item.l2 == "warm")


def _decode_s(s: Shape, dim: int, kind: str, gpu: GpuSpec, fit: Efficiency, *, warm: bool) -> float:
    op = DecodeAttention(
        s["batch"], s["batch"] * s["length"], s["length"], s["heads"], s["kv_heads"], dim, dim,
        2.0 * s["kv_heads"] * dim * KV_BYTES[kind], kind,
    )  # fmt: skip
    return decode_cost(op, fit.decode, gpu, fit.prefill.tensor, l2_warm=warm).seconds


def _small(item: Item, gpu: GpuSpec, fit: Efficiency) -> float:
    s = item.shape
    elements = s["rows"] * s["columns"] if "rows" in s else s["tokens"] * s["kv_heads"] * s["dim"]
    return elementwise_cost(Elementwise(6.0 * elements), fit.stream, gpu).seconds


_FORMS: dict[str, Callable[[Item, GpuSpec, Efficiency], float]] = {
    "gemm": _gemm,
    "triton_gemm": _gemm,
    "prefill": _prefill,
    "prefill_cached": _prefill,
    "decode": _decode,
    "decode_warm": _decode,
    "contiguous_decode": _decode,
    **dict.fromkeys(
        ("rms_norm", "layer_norm", "softmax", "silu_mul", "qkv_rotary", "write_kv", "quantise_kv"),
        _small,
    ),
}

_L2_PER_HBM = 2.4
_CHASE_CYCLES = (280.0, 505.0, 690.0)
"""Hopper's L2 near, L2 far and DRAM (physics.md, section 1)."""


def _stream_s(num_bytes: float, gpu: GpuSpec, fit: Efficiency) -> float:
    rate = fit.stream * gpu.hbm_bytes_per_s * (_L2_PER_HBM if num_bytes < 0.8 * gpu.l2_bytes else 1)
    return 2e-6 + num_bytes / rate


def _stream(s: Shape, gpu: GpuSpec, fit: Efficiency) -> float:
    return _stream_s(float(s["bytes"] * (2 if s.get("mode") == 2 else 1)), gpu, fit)


def _chase(s: Shape, gpu: GpuSpec, _fit: Efficiency) -> float:
    near, far, dram = _CHASE_CYCLES
    footprint = s["footprint_bytes"]
    half = gpu.l2_bytes / 2
    cycles = near if footprint <= half else far if footprint <= gpu.l2_bytes else dram
    if s["stride_bytes"] >= 2**21:
        cycles = dram + (30.0 if footprint > 2**25 else 0.0) + (150 if footprint > 2**35 else 0.0)
    return cycles / gpu.boost_hz


def _gather(s: Shape, gpu: GpuSpec, fit: Efficiency) -> float:
    reach = 0.5 if s["footprint_bytes"] > 2**35 else 1.0
    return s["block_bytes"] / (fit.stream * gpu.hbm_bytes_per_s * reach)


def _copy(s: Shape, gpu: GpuSpec, fit: Efficiency) -> float:
    aligned = s["offset_bytes"] % 128 == 0
    return _stream_s(2.0 * s["bytes"], gpu, fit) * (1.0 if aligned else 1.03)


def _lda(s: Shape, gpu: GpuSpec, fit: Efficiency) -> float:
    classes = {16: 1.0, 8: 0.95, 4: 0.6, 2: 0.35}
    step = next(size for size in classes if (2 * s["lda"]) % size == 0)
    return _tile_edge(s, gpu, fit) / classes[step]


def _tile_edge(s: Shape, gpu: GpuSpec, fit: Efficiency) -> float:
    return gemm_cost(Gemm(s["m"], s["n"], s["k"]), fit.gemm, gpu).seconds


def _order(s: Shape, gpu: GpuSpec, fit: Efficiency) -> float:
    shape = {"heads": 32, "kv_heads": 8, "batch": s["seqs"], "length": s["context_tokens"]}
    small = 1.0 + 0.6 / s.get("block_tokens", 64)
    warm = s.get("cold") == 0
    return small * _decode_s(shape, 128, "bf16", gpu, fit, warm=warm)


_ONCE_S = 5e-6
"""What a row of launches takes beside them."""


def _launch(s: Shape, _gpu: GpuSpec, fit: Efficiency) -> float:
    launch: LaunchFit = fit.launch
    each_s = (launch.stream_gap_s, launch.graph_gap_s, launch.eager_op_s)[s["graph"]]
    return each_s + _ONCE_S / s["launches"]


def _transfer(s: Shape, _gpu: GpuSpec, _fit: Efficiency) -> float:
    fragments = s.get("fragments", 1)
    return 8e-6 + 2e-6 * fragments + s["bytes"] / (50e9 if s["pinned"] else 12e9)


def _shared(s: Shape, gpu: GpuSpec, _fit: Efficiency) -> float:
    return 30.0 * math.gcd(max(s["stride_words"], 1), 32) / gpu.boost_hz


def _unknown(_s: Shape, _gpu: GpuSpec, _fit: Efficiency) -> float:
    return 1e-5


_PROBES: dict[str, Callable[[Shape, GpuSpec, Efficiency], float]] = {
    "stream": _stream,
    "l2_sweep": _stream,
    "chase": _chase,
    "gather": _gather,
    "offset_copy": _copy,
    "lda": _lda,
    "tile_edge": _tile_edge,
    "decode_order": _order,
    "decode_l2": _order,
    "launch_gap": _launch,
    "transfer": _transfer,
    "shared_memory": _shared,
}
