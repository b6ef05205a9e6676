"""Launching, streaming and paging: parameters of a profile beside its forms and memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrate.measuring.memory_fit import stream_bytes_per_s
from hwmodels.profile import Table
from hwmodels.spec import GpuSpec

Tables = Mapping[str, Table]

_PAGED, _CONTIGUOUS = "decode.128.bf16", "contiguous_decode.128.bf16"
LARGE_KV_BYTES = 256 * 10**6
"""KV from which decode attention is judged against a plain copy."""


def launch_parameters(tables: Tables) -> dict[str, float]:
    """Return the seconds between kernels of a stream and of a graph, and of an eager operation.

    Gaps are those of kernels of 64 KB, as published ones are; an eager operation is the host's.
    Of the most launches in a row, so that what happens once doesn't count.
    """
    table = tables.get("launch_gap")
    if table is None:
        return {}
    found = {}
    for name, graph, num_bytes in _GAPS:
        mine = (table["graph"] == graph) & (table["launches"].astype(np.int64) > 1)
        mine &= table["bytes"] == num_bytes
        if mine.any():
            most = mine & (table["launches"] == table["launches"][mine].max())
            found[name] = _digits(float(np.median(table["seconds"][most])))
    return found


# Parameter, and the probe's axes `graph` (0 a stream kept full, 1 a graph, 2 the host's own pace)
# and `bytes`.
_GAPS = (("stream_gap_s", 0, 65536), ("graph_gap_s", 1, 65536), ("eager_op_s", 2, 0))


def stream_share(tables: Tables, gpu: GpuSpec) -> float | None:
    """Return the share of the memory bandwidth that plain reading reaches."""
    reached = stream_bytes_per_s(tables, gpu)
    return None if reached is None else _digits(reached / gpu.hbm_bytes_per_s)


def paging_parameters(tables: Tables) -> dict[str, Any]:
    """Return κ by block size: decode over pages against the fastest block size, tables in order.

    `ordered` and `shuffled` are by block tokens; `contiguous` is the default block size against
    KV that isn't paged at all.
    """
    found: dict[str, Any] = {}
    table = tables.get("decode_order")
    if table is not None:
        found.update(_by_block(table))
    paged, plain = tables.get(_PAGED), tables.get(_CONTIGUOUS)
    if paged is not None and plain is not None:
        mine = _by_shape(paged)
        both = [(mine[shape], s) for shape, s in _by_shape(plain).items() if shape in mine]
        if both:
            found["contiguous"] = _digits(float(np.median([a / b for a, b in both])))
    return found


def _by_block(table: Table) -> dict[str, dict[str, float]]:
    """Ratios to the fastest ordered block size of the same batch, medians over batches."""
    shapes = [name for name in table if name not in ("seconds", "block_tokens", "shuffled")]
    rows: dict[tuple[int, ...], dict[tuple[int, int], float]] = {}
    for values in zip(*(table[name].tolist() for name in table), strict=True):
        row = dict(zip(table, values, strict=True))
        batch = rows.setdefault(tuple(int(row[name]) for name in shapes), {})
        batch[int(row["block_tokens"]), int(row["shuffled"])] = float(row["seconds"])
    ratios: dict[str, dict[str, list[float]]] = {"ordered": {}, "shuffled": {}}
    for batch in rows.values():
        ordered = [seconds for (_, shuffled), seconds in batch.items() if not shuffled]
        if not ordered:
            continue
        for (block, shuffled), seconds in sorted(batch.items()):
            kind = ratios["shuffled" if shuffled else "ordered"]
            kind.setdefault(str(block), []).append(seconds / min(ordered))
    return {
        kind: {block: _digits(float(np.median(found))) for block, found in blocks.items()}
        for kind, blocks in ratios.items()
        if blocks
    }


def _by_shape(table: Table) -> dict[tuple[int, ...], float]:
    axes = [table[name].tolist() for name in ("heads", "kv_heads", "batch", "length")]
    return dict(zip(zip(*axes, strict=True), table["seconds"].tolist(), strict=True))


def paged_share_of_copy(tables: Tables, gpu: GpuSpec) -> tuple[float, int] | None:
    """Return decode's bandwidth over large KV as a share of the measured copy's, and the rows.

    The median over rows of at least 256 MB of KV; None if there are none, or no copy.
    """
    copied, table = stream_bytes_per_s(tables, gpu, mode=2), tables.get(_PAGED)
    if copied is None or table is None:
        return None
    wide = [table[name].astype(np.float64) for name in ("kv_heads", "batch", "length")]
    kv_bytes = 4.0 * 128 * wide[0] * wide[1] * wide[2]
    large = kv_bytes >= LARGE_KV_BYTES
    if not large.any():
        return None
    reached = kv_bytes[large] / table["seconds"][large].astype(np.float64)
    return float(np.median(reached)) / copied, int(large.sum())


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
