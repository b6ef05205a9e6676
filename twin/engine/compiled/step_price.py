"""What any step takes."""

from typing import Any

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import NEED, NEED_D
from twin.engine.compiled.memory import (
    counters,
    flights,
    plans,
    requests,
    sources,
    splits,
)
from twin.engine.compiled.mixed import mixed
from twin.engine.compiled.pricing import WHOLE, decodes, need


@compiled
def step_time(s: Any, r: int, slot: int) -> tuple[float, int, int]:
    """Return (seconds, bound, decoding sequences) of a plan; -1: a price is missing.

    What was missing and is told whole (`WHOLE`) lies in `split`, its counter being the bound.
    """
    flight = flights(s)[r, slot]
    seqs = kv_tokens = 0
    for place in range(flight.count):
        entry = plans(s)[r, slot, place]
        if entry.tokens == 1:
            seqs, kv_tokens = seqs + 1, kv_tokens + requests(s)[entry.row].computed
    if counters(s)[NEED] == WHOLE:  # Python has told it
        counters(s)[NEED] = 0
        for index in range(4):
            sources(s)[r, index] += splits(s)[5 + index]
        return splits(s)[0], counters(s)[NEED_D], seqs
    if seqs < flight.count:
        seconds, bound = mixed(s, r, slot)
        return seconds, bound, seqs
    if flight.samples != seqs:
        need(s, WHOLE, r, slot, 0)
        return -1.0, 0, seqs
    seconds, bound = decodes(s, r, seqs, kv_tokens)
    return seconds, bound, seqs
