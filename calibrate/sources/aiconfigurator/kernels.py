"""The kernel families: which rows become which table of a profile."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibrate.sources.aiconfigurator.archive import Rows, where
from calibrate.sources.aiconfigurator.clean import above_peak, drop_spikes, mask_of
from calibrate.sources.tabulate import Columns, tabulate
from hwmodels.gpus import GPUS

_GEMM_KERNELS = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "int8_wo": "int8",
    "int4_wo": "int4",
}
_EXPERT_KERNELS = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "int4_wo": "int4",
    "w4a16_mxfp4": "mxfp4",
}
_ELEMENT_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "int8": 1.0, "int4": 0.5}
_KV = {"bfloat16": "bf16", "fp8": "fp8"}
_NCCL = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
}
# Routing that expert tables were measured under, most wanted first: real routing is skewed.
_ROUTING = ("power_law_1.2", "power_law_1.01", "balanced")
_HEAD_DIMS = (64, 128, 192, 256)
_MS = 1e-3
_HALF_BYTES = 2  # of NCCL's "half" and of bfloat16


@dataclass
class Found:
    """Tables of one family, and what was done to the rows on the way."""

    tables: dict[str, Columns] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def gemm_tables(rows: Rows, gpu: str) -> Found:
    """Return dense products, a table for each number format.

    Non-monotone rows stay: they are choices of tile, split and (in `fp8_block`) kernel that the
    engine makes. Rows above the memory's peak ran from the L2; they stay and are counted.
    """
    found = Found()
    for dtype, name in _GEMM_KERNELS.items():
        part = where(rows, mask_of(rows, gemm_dtype=dtype))
        if not len(part["m"]):
            continue
        table, repeated = tabulate({axis: part[axis] for axis in "mnk"}, part["latency"] * _MS)
        m, n, k = (table[axis].astype(np.float64) for axis in "mnk")
        moved = n * k * _ELEMENT_BYTES[name] + 2 * m * n + m * k * (1 if "fp8" in name else 2)
        fast = int(above_peak(table, moved, GPUS[gpu].hbm_bytes_per_s).sum())
        found.tables[f"gemm.{name}"] = table
        found.notes += _counts(f"gemm.{name}", repeated, 0)
        if fast:
            found.notes.append(f"gemm.{name}: {fast} rows above the memory's peak (L2-resident)")
        sources = sorted(set(part["kernel_source"].tolist()))
        found.notes.append(f"gemm.{name}: {', '.join(sources)}")
    return found


def attention_tables(rows: Rows, kernel: str) -> Found:
    """Return attention over whole prompts (`prefill`) or of one new token (`decode`).

    A table for each head dimension, window and KV format. Decode with a window isn't kept: nothing
    asks for it, since a window caps the length. FP8 KV takes rows computed in FP8 if there are any.
    """
    found = Found()
    windows = rows.get("window_size", np.zeros(len(rows["head_dim"]), dtype=np.int64))
    rows = {**rows, "window_size": windows}
    for dim in _HEAD_DIMS:
        for window in np.unique(windows).tolist() if kernel == "prefill" else [0]:
            for stored, kv_dtype in _KV.items():
                mask = mask_of(rows, head_dim=dim, window_size=window, kv_cache_dtype=stored)
                name = f"{kernel}.{dim}{f'w{window}' if window else ''}.{kv_dtype}"
                _add_attention(found, name, where(rows, _one_kernel(rows, mask)), kernel)
    return found


def latent_tables(rows: Rows, kernel: str) -> Found:
    """Return latent attention: expanded heads in prefill, one shared latent in decode."""
    found = Found()
    for stored, kv_dtype in _KV.items():
        part = where(rows, mask_of(rows, kv_cache_dtype=stored))
        heads = part["num_heads"]
        part["num_key_value_heads"] = heads if kernel == "prefill" else np.ones_like(heads)
        _add_attention(found, f"{kernel}.mla.{kv_dtype}", part, kernel)
    return found


def _one_kernel(rows: Rows, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Narrow a mask to one attention dtype and the commonest kernel."""
    for column in ("attn_dtype", "kernel_source"):
        if column not in rows or not mask.any():
            continue
        values, counts = np.unique(rows[column][mask], return_counts=True)
        choice = "fp8" if column == "attn_dtype" and "fp8" in values else values[counts.argmax()]
        mask = mask & (rows[column] == choice)
    return mask


def _add_attention(found: Found, name: str, part: Rows, kernel: str) -> None:
    if not len(part["latency"]):
        return
    # A decode row holds `step` tokens and adds one.
    length = part["isl"] if kernel == "prefill" else part["isl"] + part["step"]
    shape = {
        "heads": part["num_heads"],
        "kv_heads": part["num_key_value_heads"],
        "batch": part["batch_size"],
        "length": length,
    }
    table, repeated = tabulate(shape, part["latency"] * _MS)
    table, dropped = drop_spikes(table, "length")
    found.tables[name] = table
    found.notes += _counts(name, repeated, dropped)


def expert_tables(rows: Rows) -> Found:
    """Return grouped expert products, under the most skewed routing measured."""
    found = Found()
    routing = next(r for r in _ROUTING if (rows["distribution"] == r).any())
    found.notes.append(f"experts: routing {routing}")
    for dtype, name in _EXPERT_KERNELS.items():
        part = where(rows, mask_of(rows, moe_dtype=dtype, distribution=routing))
        if not len(part["latency"]):
            continue
        shape = {
            "hidden": part["hidden_size"],
            "intermediate": part["inter_size"] // part["moe_tp_size"],
            "experts": part["num_experts"],
            "local": part["num_experts"] // part["moe_ep_size"],
            "topk": part["topk"],
            "tokens": part["num_tokens"],
        }
        table, repeated = tabulate(shape, part["latency"] * _MS)
        found.tables[f"experts.{name}"] = table
        found.notes += _counts(f"experts.{name}", repeated, 0)
    return found


def nccl_tables(rows: Rows) -> Found:
    """Return NCCL in half precision; sizes come as elements."""
    found = Found()
    for op, kind in _NCCL.items():
        part = where(rows, mask_of(rows, op_name=op, nccl_dtype="half"))
        shape = {"ranks": part["num_gpus"], "bytes": part["message_size"] * _HALF_BYTES}
        if len(part["latency"]):
            table, repeated = tabulate(shape, part["latency"] * _MS)
            found.tables[f"nccl.{kind}"] = table
            found.notes += _counts(f"nccl.{kind}", repeated, 0)
    return found


def engine_all_reduce(rows: Rows, engine: str) -> Found:
    """Return the engine's own all-reduce inside a CUDA graph; sizes come as elements.

    Eager rows measure the host's launch, which is priced elsewhere. Some files hold another
    engine's rows: those give nothing.
    """
    found = Found()
    own = np.char.startswith(np.char.lower(rows["framework"]), engine)
    if "backend" in rows:
        own &= np.char.endswith(rows["backend"], "_graph")
    part = where(rows, own)
    if len(part["latency"]):
        shape = {"ranks": part["num_gpus"], "bytes": part["message_size"] * _HALF_BYTES}
        found.tables["engine_all_reduce"], _ = tabulate(shape, part["latency"] * _MS)
    return found


def _counts(name: str, repeated: int, dropped: int) -> list[str]:
    notes = []
    if repeated:
        notes.append(f"{name}: {repeated} repeated rows, median taken")
    if dropped:
        notes.append(f"{name}: {dropped} rows dropped, half or double of both neighbours")
    return notes
