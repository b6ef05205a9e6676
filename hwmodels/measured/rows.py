"""What a cost model says of the rows of measured tables: for judging it, never for serving."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from hwmodels.dtypes import KV_BYTES
from hwmodels.measured.model import MeasuredCostModel
from hwmodels.measured.tables import kernel_of
from hwmodels.ops import Collective, DecodeAttention, ExpertGemm, Gemm, PrefillAttention
from hwmodels.profile import HardwareProfile, Table
from hwmodels.spec import GpuSpec


def predicted_seconds(
    profile: HardwareProfile, gpu: GpuSpec, name: str, rows: Table
) -> NDArray[np.float64]:
    """Return the seconds that a profile gives each row of a table, as tables are measured.

    Args:
        profile: prices them; without the rows themselves, their prices are held out.
        gpu: its part.
        name: of the table that the rows are of.
        rows: their columns.

    Raises:
        KeyError: nothing prices such a table (`PRICED`).
    """
    variant = name.partition(".")[2]
    model = MeasuredCostModel(
        profile,
        gpu,
        fp8_kernel="fp8_block" if variant == "fp8_block" else "fp8",
        as_measured=True,
    )
    price = _PRICES[kernel_of(name)]
    columns = [rows[column].tolist() for column in rows if column != "seconds"]
    return np.array([price(model, variant, values) for values in zip(*columns, strict=True)])


Values = Iterable[int]


def _gemm(model: MeasuredCostModel, variant: str, values: Values) -> float:
    m, n, k = values
    compute, weight = ("fp8", "fp8") if variant.startswith("fp8") else ("bf16", variant)
    return model.cost(Gemm(m, n, k, compute, weight)).seconds


def _dims(variant: str, kernel: str) -> tuple[int, int, str]:
    head, _, dtype = variant.partition(".")
    if head == "mla":
        return (192, 128, dtype) if kernel == "prefill" else (576, 512, dtype)
    return int(head), int(head), dtype


def _prefill(model: MeasuredCostModel, variant: str, values: Values) -> float:
    heads, kv_heads, batch, length = values
    qk_dim, v_dim, dtype = _dims(variant, "prefill")
    op = PrefillAttention(length, length, heads, kv_heads, qk_dim, v_dim, dtype)
    return model.prefill.batch_seconds(op, batch)[0]


def _cached(model: MeasuredCostModel, variant: str, values: Values) -> float:
    heads, kv_heads, batch, query, length = values
    qk_dim, v_dim, dtype = _dims(variant, "prefill")
    op = PrefillAttention(query, length, heads, kv_heads, qk_dim, v_dim, dtype)
    return model.prefill.batch_seconds(op, batch)[0]


def _decode(model: MeasuredCostModel, variant: str, values: Values) -> float:
    heads, kv_heads, batch, length = values
    qk_dim, v_dim, dtype = _dims(variant, "decode")
    width = qk_dim if qk_dim != v_dim else 2 * kv_heads * qk_dim
    num_bytes = width * KV_BYTES[dtype]
    op = DecodeAttention(
        batch, batch * length, length, heads, kv_heads, qk_dim, v_dim, num_bytes, dtype
    )
    return model.cost(op).seconds


def _experts(model: MeasuredCostModel, variant: str, values: Values) -> float:
    hidden, intermediate, experts, local, topk, tokens = values
    compute = "fp8" if variant.startswith("fp8") else "bf16"
    weight = "fp8" if variant.startswith("fp8") else variant
    op = ExpertGemm(
        tokens, hidden, intermediate, 2 * intermediate, experts, local, topk, compute, weight
    )
    return model.cost(op).seconds


def _nccl(model: MeasuredCostModel, variant: str, values: Values) -> float:
    ranks, num_bytes = values
    return model.cost(Collective(variant, float(num_bytes), ranks, custom_allowed=False)).seconds


def _engine(model: MeasuredCostModel, _variant: str, values: Values) -> float:
    ranks, num_bytes = values
    return model.cost(Collective("all_reduce", float(num_bytes), ranks)).seconds


_PRICES: dict[str, Callable[[MeasuredCostModel, str, Values], float]] = {
    "gemm": _gemm,
    "prefill": _prefill,
    "prefill_cached": _cached,
    "decode": _decode,
    "experts": _experts,
    "nccl": _nccl,
    "engine_all_reduce": _engine,
}

PRICED = frozenset(_PRICES)
"""Kernels whose tables can be judged so."""
