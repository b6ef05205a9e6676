"""What a step with prefill takes (`StepTimer`'s mixed steps, `PrefillGrid`)."""

from typing import Any

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.memory import (
    body_of,
    captured,
    cell_of,
    cells,
    flights,
    floors,
    head_of,
    histories,
    line_of,
    lines,
    plans,
    policies,
    queries,
    requests,
    sources,
    splits,
    sums,
)
from twin.engine.compiled.pricing import (
    BODY,
    CELL,
    FLOOR,
    HEAD,
    LINE,
    MOST_KERNELS,
    WHOLE,
    knot_of,
    need,
)
from twin.llm.decode_piece import LAUNCH as _LAUNCH
from twin.llm.decode_piece import PHYSICS as _PHYSICS
from twin.llm.step_time import EXACT_TOKENS as _EXACT_TOKENS
from twin.llm.step_time import TILE as _TILE


@compiled
def _largest(values: Any) -> int:
    best = 0
    for index in range(1, 4):
        if values[index] > values[best]:
            best = index
    return best


@compiled
def _body(s: Any, tokens: int) -> int:
    row = body_of(s)[tokens]
    if row < 0:
        need(s, BODY, tokens, 0, 0)
    return row


@compiled
def _put(s: Any, seconds: float, bound: int, source: int) -> None:
    """Add to the step being priced: `split` is seconds, four bounds, four sources."""
    splits(s)[0] += seconds
    splits(s)[1 + bound] += seconds
    splits(s)[5 + source] += seconds


@compiled
def _dense(s: Any, tokens: int) -> tuple[int, bool]:
    """Start with what sees every token; return (kernels or -1, it runs as a graph)."""
    split, graph = splits(s), True
    size, low, high = 0, 0, captured(s).size
    while low < high:
        middle = (low + high) // 2
        if captured(s)[middle] < tokens:
            low = middle + 1
        else:
            high = middle
    if low < captured(s).size:
        size = captured(s)[low]
    else:
        size, graph = tokens, False
    bits = 0
    while tokens >> bits:
        bits += 1
    step = max(_TILE, 2 ** (bits - 1) // _TILE)
    beyond = tokens % step
    if graph or tokens <= _EXACT_TOKENS or not beyond:
        row = _body(s, size)
        if row < 0:
            return -1, graph
        total = sums(s)[row]
        split[0] = total.seconds
        for index in range(4):
            split[1 + index] = total.bound[index]
            split[5 + index] = total.source[index]
        return total.kernels, graph
    start = tokens - beyond + 1
    first, second = _body(s, start), -1
    if first >= 0:
        second = _body(s, start - 1 + step)
    if second < 0:
        return -1, graph
    a, b = sums(s)[first], sums(s)[second]
    share = (beyond - 1) / (step - 1)
    split[0] = a.seconds + share * (b.seconds - a.seconds)
    for index in range(4):
        split[1 + index] = a.bound[index] + share * (b.bound[index] - a.bound[index])
        split[5 + index] = a.source[index] + share * (b.source[index] - a.source[index])
    return a.kernels, graph


@compiled
def _after(knots: Any, value: int) -> int:
    """Return the place after the last knot at or below a value (`bisect_right`)."""
    low, high = 0, knots.size
    while low < high:
        middle = (low + high) // 2
        if value < knots[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _chunk(s: Any, query: int, kv_tokens: int, joined: int) -> int:
    """Add the attention of a prefill chunk (`PrefillGrid.at`); return its kernels or -1."""
    history = kv_tokens - query
    after_q, after_h = _after(queries(s), query), _after(histories(s), history)
    row = cell_of(s)[after_q, after_h, joined]
    if row < 0:
        need(s, CELL, after_q, after_h, joined)
        return -1
    cell = cells(s)[row]
    u, v = (query - cell.q0) * cell.per_q, (history - cell.h0) * cell.per_h
    seconds = cell.base + cell.by_q * u + (cell.by_h + cell.by_both * u) * v
    _put(s, seconds, cell.bound, cell.source)
    return cell.kernels


@compiled
def _head(s: Any, samples: int) -> int:
    """Add the output layer; return its kernels or -1."""
    row = head_of(s)[samples]
    if row < 0:
        need(s, HEAD, samples, 0, 0)
        return -1
    total = sums(s)[row]
    splits(s)[0] += total.seconds
    for index in range(4):
        splits(s)[1 + index] += total.bound[index]
        splits(s)[5 + index] += total.source[index]
    return total.kernels


@compiled
def _decode_attention(s: Any, seqs: int, kv_tokens: int) -> int:
    """Add the attention of decodes beside prefill; return its kernels or -1."""
    knot = knot_of(kv_tokens / seqs)
    row = line_of(s)[seqs, knot]
    if row < 0:
        need(s, LINE, seqs, knot, kv_tokens)
        return -1
    line = lines(s)[row]
    _put(s, line.base_s + line.slope_s * kv_tokens, line.bound, line.source)
    return line.kernels


@compiled
def _attention(s: Any, r: int, slot: int) -> int:
    """Add the attention of all chunks of a plan, decodes last; return its kernels or -1."""
    kernels = seqs = kv_tokens = joined = 0
    for place in range(flights(s)[r, slot].count):
        entry = plans(s)[r, slot, place]
        kv = requests(s)[entry.row].computed
        if entry.tokens == 1:
            seqs, kv_tokens = seqs + 1, kv_tokens + kv
            continue
        found = _chunk(s, entry.tokens, kv, joined)
        if found < 0:
            return -1
        kernels += found
        joined = 1
    if seqs:
        found = _decode_attention(s, seqs, kv_tokens)
        if found < 0:
            return -1
        kernels += found
    return kernels


@compiled
def mixed(s: Any, r: int, slot: int) -> tuple[float, int]:
    """Return (seconds, bound) of a step with prefill; -1: a price is missing."""
    policy, flight, split = policies(s)[0], flights(s)[r, slot], splits(s)
    kernels, graph = _dense(s, flight.tokens)
    if kernels < 0:
        return -1.0, 0
    for part in range(2):
        found = _head(s, flight.samples) if part == 0 else _attention(s, r, slot)
        if found < 0:
            return -1.0, 0
        kernels += found
    host_s = policy.extra_s + policy.gap_s + policy.gap_per_seq_s * flight.count
    _put(s, host_s, _LAUNCH, _PHYSICS)
    if kernels >= MOST_KERNELS:
        need(s, WHOLE, r, slot, 0)
        return -1.0, 0
    floor_s = floors(s)[int(graph), kernels]
    if floor_s < 0:
        need(s, FLOOR, int(graph), kernels, 0)
        return -1.0, 0
    floor_s = floor_s + policy.tail * split[0]
    bound = _largest(split[1:5])
    if floor_s > split[0]:
        split[5 + _PHYSICS] += floor_s - split[0]
        split[0], bound = floor_s, _LAUNCH
    for index in range(4):
        sources(s)[r, index] += split[5 + index]
    return split[0], bound
