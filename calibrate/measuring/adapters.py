"""From the axes of a table to the shapes that `kernels.catalogue` makes cases of."""

from collections.abc import Callable, Mapping

from calibrate.measuring.item import Item

Shape = dict[str, int]
_BLOCK_TOKENS = 16
"""Of the paged cache that attention is measured over: what engines choose by default."""

INT4_GROUP = 128
"""Weights along k that share a scale, as in published checkpoints."""


def case_shape(item: Item) -> Shape:
    """Return the shape that `Kernel.make_case` takes for an item."""
    adapt = _ADAPTERS.get(item.launches)
    return adapt(item.table, item.shape) if adapt else dict(item.shape)


def _head_dim(table: str) -> int:
    return int(table.split(".")[1])


def _weight(_table: str, s: Mapping[str, int]) -> Shape:
    """A product with a weight, which lies as [n, k]."""
    return {**s, "transposed_b": 1}


def _grouped(_table: str, s: Mapping[str, int]) -> Shape:
    return {**s, "group": INT4_GROUP}


def _decode(table: str, s: Mapping[str, int]) -> Shape:
    return {
        "seqs": s["batch"],
        "heads": s["heads"],
        "kv_heads": s["kv_heads"],
        "dim": _head_dim(table),
        "block_tokens": _BLOCK_TOKENS,
        "context_tokens": s["length"],
    }


def _contiguous(table: str, s: Mapping[str, int]) -> Shape:
    shape = _decode(table, s)
    del shape["block_tokens"]
    return shape


def _prefill(table: str, s: Mapping[str, int]) -> Shape:
    shape, query = _decode(table, s), s.get("query", s["length"])
    del shape["context_tokens"]
    return {**shape, "query_tokens": query, "cached_tokens": s["length"] - query}


def _activation(_table: str, s: Mapping[str, int]) -> Shape:
    return {"rows": s["rows"], "width": s["columns"]}


_ADAPTERS: dict[str, Callable[[str, Mapping[str, int]], Shape]] = {
    "matmul": _weight,
    "matmul_library": _weight,
    "matmul_int4": _grouped,
    "paged_decode": _decode,
    "contiguous_decode": _contiguous,
    "quantised_decode": _decode,
    "paged_prefill": _prefill,
    "silu_mul": _activation,
}
