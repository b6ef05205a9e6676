"""What Python calls: with the address of the table (`twin.engine.compiled.memory.at`)."""

from typing import Any

from twin.engine.compiled import expand, loop, outside
from twin.engine.compiled.jit import compiled
from twin.engine.compiled.memory import at

_advance, _submit, _feed, _advance_all = loop.advance, loop.submit, loop.feed, loop.advance_all
_first_end_s, _cached_keys, _abort = outside.first_end_s, outside.cached_keys, outside.abort
_held, _reset = outside.held, outside.reset
_step_rows, _gap_counts, _write_gaps = expand.step_rows, expand.gap_counts, expand.write_gaps


@compiled
def advance(address: int, r: int, call_until_s: float, until_s: float, hears: bool) -> int:
    """See `loop.advance`."""
    return _advance(at(address), r, call_until_s, until_s, hears)


@compiled
def submit(address: int, r: int, row: int, at_s: float) -> bool:
    """See `loop.submit`."""
    return _submit(at(address), r, row, at_s)


@compiled
def feed(address: int, rows: Any, targets: Any, at_s: Any, start: int) -> tuple[int, int, int]:
    """See `loop.feed`."""
    return _feed(at(address), rows, targets, at_s, start)


@compiled
def advance_all(address: int, until_s: float) -> tuple[int, int]:
    """See `loop.advance_all`."""
    return _advance_all(at(address), until_s)


@compiled
def first_end_s(address: int, r: int) -> float:
    """See `outside.first_end_s`."""
    return _first_end_s(at(address), r)


@compiled
def cached_keys(address: int, r: int, keys: Any) -> int:
    """See `outside.cached_keys`."""
    return _cached_keys(at(address), r, keys)


@compiled
def abort(address: int, r: int, row: int) -> bool:
    """See `outside.abort`."""
    return _abort(at(address), r, row)


@compiled
def held(address: int, r: int, out: Any) -> int:
    """See `outside.held`."""
    return _held(at(address), r, out)


@compiled
def reset(address: int, r: int) -> None:
    """See `outside.reset`."""
    _reset(at(address), r)


@compiled
def step_rows(address: int, out: Any, room: Any) -> None:
    """See `expand.step_rows`."""
    _step_rows(at(address), out, room)


@compiled
def gap_counts(address: int, out: Any) -> None:
    """See `expand.gap_counts`."""
    _gap_counts(at(address), out)


@compiled
def write_gaps(address: int, ends: Any, out: Any, room: Any) -> None:
    """See `expand.write_gaps`."""
    _write_gaps(at(address), ends, out, room)
