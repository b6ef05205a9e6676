"""The grid of each kernel's table: what is worth measuring on a GPU."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from calibrate.measuring.item import L2
from calibrate.measuring.order import Shape, coarse_to_fine
from hwmodels.dtypes import KV_BYTES, WEIGHT_BYTES
from hwmodels.spec import GpuSpec

Work = tuple[float, float]
"""Bytes moved and operations of one launch."""

_MOST_KV_BYTES = 8 * 2**30
_KV_SHARE = 1 / 12
"""Of the memory: inputs are made in FP32, and copied, before they are narrow."""
_MOST_QUANTISED_BYTES = 2**30
"""Of KV before it is quantised, which is done in float64."""
_QUANTISED = {name: name for name in ("fp8", "int8", "int4")}
_MOST_FLOPS = 2e13

# (n, k) of Llama-3.1-8B's products at TP 1 and Llama-3.1-70B's at TP 8, output heads last.
_PRODUCTS = (
    (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336),
    (1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584),
    (128256, 4096), (16032, 8192),
)  # fmt: skip
_ROWS = (
    1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 255, 256, 257,
    320, 384, 448, 512, 640, 768, 896, 1023, 1024, 1025, 1280, 1536, 1792, 2048, 2560, 3072, 4096,
    5120, 6144, 8192, 10240, 12288, 16384,
)  # fmt: skip
_FEW_ROWS = (1, 16, 64, 128, 256, 512, 1024, 4096)
_LENGTHS = (
    2, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
    16384, 24576, 32768, 49152, 65536,
)  # fmt: skip
_BATCHES = (
    1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
)  # fmt: skip
_PROMPTS = (
    128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
)  # fmt: skip
_PROMPT_BATCHES = (1, 2, 3, 4, 6, 8, 12, 16)
_HEADS = ((32, 8), (8, 1))
_TOKENS = (1, 16, 128, 1024, 8192)


@dataclass(frozen=True, slots=True)
class Sweep:
    """One table's grid.

    Attributes:
        family: what `--only` chooses by.
        table, launches, dtype, l2: as of `Item`.
        points: shapes, the most telling first.
        work: bytes and operations of one launch.
        weight: seconds of a full run that it should get, in proportion to the others.
    """

    family: str
    table: str
    launches: str
    dtype: str
    points: Sequence[Shape]
    work: Callable[[Shape], Work]
    weight: float
    l2: L2 = "cold"


def sweeps(gpu: GpuSpec) -> tuple[Sweep, ...]:
    """Return every table's grid on a GPU."""
    return (
        *_products(gpu),
        *_decode(gpu),
        *_prefill(),
        *_small(gpu),
    )


def _products(gpu: GpuSpec) -> list[Sweep]:
    def work(weight: str, activation: float) -> Callable[[Shape], Work]:
        def of(s: Shape) -> Work:
            m, n, k = s["m"], s["n"], s["k"]
            moved = activation * m * k + WEIGHT_BYTES[weight] * n * k + 2 * m * n
            return moved, 2.0 * m * n * k

        return of

    every = _product_points(_ROWS, _PRODUCTS)
    few = _product_points(_FEW_ROWS, _PRODUCTS[:4])
    quantised = _product_points((1, 4, 16, 32, 64, 128, 256, 512, 1024, 4096), _PRODUCTS[:8])
    found = [
        Sweep("gemm", "gemm.bf16", "matmul_library", "bfloat16", every, work("bf16", 2), 60),
        Sweep("gemm", "triton_gemm.bf16", "matmul", "bfloat16", few, work("bf16", 2), 8),
        Sweep("gemm", "gemm.int8", "matmul_int8", "bfloat16", quantised, work("int8", 2), 9),
        Sweep("gemm", "gemm.int4", "matmul_int4", "bfloat16", quantised, work("int4", 2), 9),
    ]
    if "fp8" in gpu.flops_per_s:
        fp8 = work("fp8", 1)
        found += [
            Sweep("gemm", "gemm.fp8", "matmul_fp8_library", "fp8", every, fp8, 25),
            Sweep("gemm", "triton_gemm.fp8", "matmul_fp8", "fp8", few, fp8, 4),
        ]
    return found


def _product_points(rows: Sequence[int], products: Sequence[tuple[int, int]]) -> list[Shape]:
    grid = coarse_to_fine({"product": range(len(products)), "m": rows})
    return [
        {"m": p["m"], "n": products[p["product"]][0], "k": products[p["product"]][1]} for p in grid
    ]


def _decode(gpu: GpuSpec) -> list[Sweep]:
    most = min(_MOST_KV_BYTES, int(_KV_SHARE * gpu.visible_memory_bytes))

    def points(
        heads: Iterable[tuple[int, int]],
        dim: int,
        batches: Sequence[int],
        lengths: Sequence[int],
        limit: float = most,
    ) -> list[Shape]:
        found = []
        for pair in heads:
            grid = coarse_to_fine({"batch": batches, "length": lengths})
            every = [{"heads": pair[0], "kv_heads": pair[1], **point} for point in grid]
            found += [point for point in every if _kv_bytes(point, dim, "bf16") <= limit]
        return found

    coarse = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    some = (2, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
    whole = points(_HEADS[:1], 128, _BATCHES, _LENGTHS)
    warm = points(_HEADS[:1], 128, coarse, some[:-1], 1.5 * gpu.l2_bytes)
    batches = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    limit = min(most, _MOST_QUANTISED_BYTES)
    quantised = points(_HEADS[:1], 128, batches, _LENGTHS[4:], limit)
    beside = points(_HEADS[:1], 128, (8, 64), (1024, 4096, 8192, 32768))
    kinds = [
        ("decode.128.bf16", "paged_decode", 128, whole, 45.0),
        ("decode.128.bf16", "paged_decode", 128, points(_HEADS[1:], 128, coarse, some), 12.0),
        ("decode.64.bf16", "paged_decode", 64, points(_HEADS[:1], 64, coarse, some), 12.0),
        ("decode_warm.128.bf16", "paged_decode", 128, warm, 8.0),
        ("contiguous_decode.128.bf16", "contiguous_decode", 128, beside, 6.0),
    ]
    formats = ["int8", "int4", *(["fp8"] if "fp8" in gpu.flops_per_s else [])]
    kinds += [(f"decode.128.{f}", "quantised_decode", 128, quantised, 10.0) for f in formats]
    return [
        Sweep(
            family="decode",
            table=table,
            launches=launches,
            dtype=_QUANTISED.get(table.rpartition(".")[2], "bfloat16"),
            points=found,
            work=_decode_work(dim, table.rpartition(".")[2]),
            weight=weight,
            l2="warm" if table.startswith("decode_warm") else "cold",
        )
        for table, launches, dim, found, weight in kinds
    ]


def _kv_bytes(shape: Mapping[str, int], dim: int, kind: str) -> float:
    return 2.0 * KV_BYTES[kind] * dim * shape["kv_heads"] * shape["batch"] * shape["length"]


def _decode_work(dim: int, kind: str) -> Callable[[Shape], Work]:
    def work(s: Shape) -> Work:
        flops = 4.0 * s["batch"] * s["length"] * s["heads"] * dim
        return _kv_bytes(s, dim, kind) + 4.0 * s["batch"] * s["heads"] * dim, flops

    return work


def _prefill() -> list[Sweep]:
    found = []
    for dim, weight in ((128, 30.0), (64, 15.0)):
        work = _prefill_work(dim)
        points = [
            {"heads": heads, "kv_heads": kv_heads, **point}
            for heads, kv_heads in _HEADS
            for point in coarse_to_fine({"batch": _PROMPT_BATCHES, "length": _PROMPTS})
        ]
        points = [point for point in points if work(point)[1] <= _MOST_FLOPS]
        table = f"prefill.{dim}.bf16"
        found.append(Sweep("prefill", table, "paged_prefill", "bfloat16", points, work, weight))
    cached = [
        {"heads": 32, "kv_heads": 8, "batch": 1, **point}
        for point in coarse_to_fine(
            {"query": (256, 512, 1024, 2048, 4096), "length": tuple(2**i for i in range(10, 17))}
        )
        if point["length"] > point["query"]
    ]
    table = "prefill_cached.128.bf16"
    sweep = Sweep(
        "prefill", table, "paged_prefill", "bfloat16", cached, _prefill_work(128), weight=12.0
    )
    return [*found, sweep]


def _prefill_work(dim: int) -> Callable[[Shape], Work]:
    def work(s: Shape) -> Work:
        query, length = s.get("query", s["length"]), s["length"]
        seen = query * (length - query) + query * query / 2
        moved = 4.0 * dim * s["batch"] * (query * s["heads"] + length * s["kv_heads"])
        return moved, 4.0 * dim * s["batch"] * s["heads"] * seen

    return work


def _small(gpu: GpuSpec) -> list[Sweep]:
    """Norms, activation, rotary, KV writes: between the large kernels, their inputs just made."""

    def rows(factor: float) -> Callable[[Shape], Work]:
        return lambda s: (factor * s["rows"] * s["columns"], 4.0 * s["rows"] * s["columns"])

    def tokens(s: Shape) -> Work:
        return 4.0 * s["tokens"] * (s.get("heads", 0) + 2 * s["kv_heads"]) * s["dim"], 0.0

    norm = coarse_to_fine({"rows": _TOKENS, "columns": (4096, 8192), "residual": (0, 1)})
    act = coarse_to_fine({"rows": _TOKENS, "columns": (14336, 3584)})
    logits = coarse_to_fine({"rows": (1, 16, 128), "columns": (4096, 128256)})
    heads = [
        {"tokens": t, "heads": h, "kv_heads": kv, "dim": 128} for h, kv in _HEADS for t in _TOKENS
    ]
    pages = [
        {"tokens": t, "kv_heads": kv, "dim": 128, "block_tokens": 16}
        for _, kv in _HEADS
        for t in _TOKENS
    ]
    formats = ["int8", "int4", *(["fp8"] if "fp8" in gpu.flops_per_s else [])]
    kinds = [
        ("rms_norm.bf16", "rms_norm", norm, rows(8.0), 3.0),
        ("layer_norm.bf16", "layer_norm", norm, rows(8.0), 1.0),
        ("softmax.bf16", "softmax", logits, rows(4.0), 1.0),
        ("silu_mul.bf16", "silu_mul", act, rows(6.0), 3.0),
        ("qkv_rotary.bf16", "qkv_rotary", heads, tokens, 3.0),
        ("write_kv.bf16", "write_kv", pages, tokens, 3.0),
        *((f"quantise_kv.{f}", "quantise_kv", pages, tokens, 2.0) for f in formats),
    ]
    return [
        Sweep(
            family="small",
            table=table,
            launches=launches,
            dtype=_QUANTISED.get(table.rpartition(".")[2], "bfloat16"),
            points=points,
            work=work,
            weight=weight,
            l2="warm",
        )
        for table, launches, points, work, weight in kinds
    ]
