"""How compiled code reaches the arrays of `State` and `Prices`: by address, from one table.

Passing two dozen arrays to every function would cost more than what most functions do, and make
compiling them slow. Whoever owns the arrays keeps them alive and writes the table anew when one
moves (`twin.engine.compiled.fleet`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from twin.engine.compiled import layout
from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import Prices, State

_WIDTH = 4
"""Numbers an array has in the table: its address and up to three lengths."""

FIELDS = (*State._fields, *Prices._fields)


def table_of(state: State, prices: Prices) -> Any:
    """Return the table of these arrays, shape (fields, `_WIDTH`)."""
    table = np.zeros((len(FIELDS), _WIDTH), dtype=np.int64)
    for row, array in zip(table, (*state, *prices), strict=True):
        if not array.flags.c_contiguous:
            raise ValueError("compiled code reads contiguous arrays alone")
        row[0] = array.ctypes.data
        row[1 : 1 + array.ndim] = array.shape
    return table


@intrinsic
def _pointer(_: Any, address: Any) -> Any:
    """Return an address as a pointer."""

    def convert(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), convert


_SHAPE = (len(FIELDS), _WIDTH)


@compiled
def at(address: int) -> Any:
    """Return the table at an address.

    Compiled code does not count who uses that, as it would (atomically, in every call) with an
    array that Python hands over.
    """
    return carray(_pointer(address), _SHAPE, np.int64)


def _accessor(name: str, array: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Compile an accessor under a name of its own, which code kept on disk is told apart by."""
    array.__name__ = array.__qualname__ = f"array_{name}"
    return compiled(array)


def _row(name: str, dtype: Any) -> Callable[[Any], Any]:
    """Return the accessor of an array with one axis."""
    at = FIELDS.index(name)

    def array(s: Any) -> Any:
        return carray(_pointer(s[at, 0]), (s[at, 1],), dtype)

    return _accessor(name, array)


def _rows(name: str, dtype: Any) -> Callable[[Any], Any]:
    """Return the accessor of an array with two axes."""
    at = FIELDS.index(name)

    def array(s: Any) -> Any:
        return carray(_pointer(s[at, 0]), (s[at, 1], s[at, 2]), dtype)

    return _accessor(name, array)


def _cube(name: str, dtype: Any) -> Callable[[Any], Any]:
    """Return the accessor of an array with three axes."""
    at = FIELDS.index(name)

    def array(s: Any) -> Any:
        return carray(_pointer(s[at, 0]), (s[at, 1], s[at, 2], s[at, 3]), dtype)

    return _accessor(name, array)


policies = _row("policy", layout.POLICY)
replicas = _row("replica", layout.REPLICA)
requests = _row("request", layout.REQUEST)
blocks_of = _rows("block", layout.BLOCK)
hash_tables = _rows("hash", layout.SLOT)
running_of = _rows("running", np.int64)
plans = _cube("plan", layout.ENTRY)
flights = _rows("flight", layout.FLIGHT)
sources = _rows("by_source", np.float64)
table_blocks = _row("table_block", np.int32)
table_keys = _row("table_key", np.int64)
segment_ids = _row("segment_id", np.int64)
segment_ends = _row("segment_end", np.int64)
steps = _row("step", layout.STEP)
runs = _row("run", layout.RUN)
taken_of = _row("taken", np.int32)
gaps = _row("gap", layout.GAP)
ended_rows = _row("ended", np.int64)
counters = _row("counter", np.int64)
scratch = _row("scratch", np.int64)
splits = _row("split", np.float64)
buckets = _rows("bucket", np.int32)
events = _rows("event", np.int64)
sums = _row("sums", layout.SUM)
body_of = _row("body_of", np.int32)
head_of = _row("head_of", np.int32)
lines = _row("lines", layout.LINE)
line_of = _rows("line_of", np.int32)
pieces = _row("pieces", layout.PIECE)
piece_of = _rows("piece_of", np.int32)
cells = _row("cells", layout.CELL)
cell_of = _cube("cell_of", np.int32)
queries = _row("queries", np.int64)
histories = _row("histories", np.int64)
captured = _row("captured", np.int64)
floors = _rows("floors", np.float64)
