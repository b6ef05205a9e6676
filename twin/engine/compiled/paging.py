"""KV blocks, their prefix cache and their free order (`twin.paging` over arrays)."""

from typing import Any

import numpy as np

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.memory import (
    blocks_of,
    hash_tables,
    policies,
    replicas,
    requests,
    segment_ends,
    segment_ids,
    table_blocks,
    table_keys,
)

_INDEX_BITS = 24
_TOGETHER = 3  # of a key's last bits: places of two cache lines


@compiled
def _home(key: int, mask: int) -> Any:
    """Return where a key belongs: neighbours stay together, as they are asked for in a row."""
    mixed = np.uint64(key >> _TOGETHER)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    group = np.int64(mixed & np.uint64(mask >> _TOGETHER))
    return ((group << _TOGETHER) | (key & (2**_TOGETHER - 1))) & mask


@compiled
def slot_of(table: Any, key: int) -> int:
    """Return where a key stands in an open-addressed table, or the free place it would take."""
    mask = table.size - 1
    place = _home(key, mask)
    while table[place].block != 0 and table[place].key != key:
        place = (place + 1) & mask
    return place


@compiled
def _drop(table: Any, place: int) -> None:
    """Empty a place; whoever was pushed past it moves up."""
    mask = table.size - 1
    free = place
    place = (place + 1) & mask
    while table[place].block != 0:
        home = _home(table[place].key, mask)
        # It may move up unless its home lies behind the free place (on the way round).
        if ((place - home) & mask) >= ((place - free) & mask):
            table[free].key, table[free].block = table[place].key, table[place].block
            free = place
        place = (place + 1) & mask
    table[free].block = 0


@compiled
def _cache(s: Any, r: int, block: int, key: int) -> None:
    """Make a block findable, after the twins that are already."""
    cells = blocks_of(s)[r]
    cells[block].key = key
    cells[block].has_key = 1
    cells[block].twin = 0
    table = hash_tables(s)[r]
    place = slot_of(table, key)
    first = table[place].block
    if first == 0:
        table[place].key, table[place].block = key, block
        cells[block].last_twin = block
    else:
        cells[cells[first].last_twin].twin = block
        cells[first].last_twin = block


@compiled
def _forget(s: Any, r: int, block: int) -> None:
    """Drop the content of a block; its oldest twin, if any, takes its place."""
    cells = blocks_of(s)[r]
    cells[block].has_key = 0
    table = hash_tables(s)[r]
    place = slot_of(table, cells[block].key)
    first = table[place].block
    if first == block:
        heir = cells[block].twin
        if heir == 0:
            _drop(table, place)
        else:
            table[place].block = heir
            cells[heir].last_twin = cells[block].last_twin
        return
    while cells[first].twin != block:
        first = cells[first].twin
    cells[first].twin = cells[block].twin
    if cells[first].twin == 0:
        cells[table[place].block].last_twin = first


@compiled
def allocate(s: Any, r: int, row: int, count: int) -> None:
    """Give a request new blocks; what they held is forgotten."""
    cells, request = blocks_of(s)[r], requests(s)[row]
    end = request.place + request.blocks
    block = cells[0].after
    for _ in range(count):
        following = cells[block].after
        cells[block].holders = 1
        if cells[block].has_key:
            _forget(s, r, block)
        table_blocks(s)[end] = block
        end += 1
        block = following
    cells[0].after = block
    cells[block].before = 0
    request.blocks += count
    replicas(s)[r].free_blocks -= count


@compiled
def free(s: Any, r: int, row: int) -> None:
    """Let go of a request's blocks, the tail first; see `twin.paging.eviction.lru`."""
    cells, request = blocks_of(s)[r], requests(s)[row]
    start, end = request.place, request.place + request.blocks
    before, after = 0, cells[0].after
    freed = hashed = 0
    for at in range(end - 1, start - 1, -1):
        block = table_blocks(s)[at]
        cells[block].holders -= 1
        if cells[block].holders == 0:
            freed += 1
            if cells[block].has_key:
                hashed += 1
            else:
                cells[before].after = block
                cells[block].before = before
                before = block
    cells[before].after = after
    cells[after].before = before
    if hashed:
        before = cells[0].before
        for at in range(end - 1, start - 1, -1):
            block = table_blocks(s)[at]
            if cells[block].holders == 0 and cells[block].has_key:
                cells[before].after = block
                cells[block].before = before
                before = block
        cells[before].after = 0
        cells[0].before = before
    request.blocks = 0
    request.cached_blocks = 0
    replicas(s)[r].free_blocks += freed


@compiled
def look_up(s: Any, r: int, row: int, most: int) -> int:
    """Put the longest cached prefix into a request's table; return its blocks."""
    request = requests(s)[row]
    table = hash_tables(s)[r]
    for index in range(most):
        block = table[slot_of(table, table_keys(s)[request.place + index])].block
        if block == 0:
            return index
        table_blocks(s)[request.place + index] = block
    return most


@compiled
def unheld(s: Any, r: int, row: int, hits: int) -> int:
    """Return how many of the first blocks in a request's table nobody holds."""
    place, found = requests(s)[row].place, 0
    for at in range(place, place + hits):
        if blocks_of(s)[r, table_blocks(s)[at]].holders == 0:
            found += 1
    return found


@compiled
def hold(s: Any, r: int, row: int, hits: int) -> None:
    """Hold the blocks that were hit; free ones leave the free order."""
    cells, place = blocks_of(s)[r], requests(s)[row].place
    for at in range(place, place + hits):
        block = table_blocks(s)[at]
        if cells[block].holders == 0:
            before, after = cells[block].before, cells[block].after
            cells[before].after = after
            cells[after].before = before
            replicas(s)[r].free_blocks -= 1
        cells[block].holders += 1
    requests(s)[row].blocks = hits


@compiled
def cache_up_to(s: Any, r: int, row: int, tokens: int) -> None:
    """Make the full blocks among the first tokens of a request findable."""
    request = requests(s)[row]
    full = tokens // policies(s)[0].block_size
    for index in range(request.cached_blocks, full):
        at = request.place + index
        _cache(s, r, table_blocks(s)[at], table_keys(s)[at])
    if full > request.cached_blocks:
        request.cached_blocks = full


@compiled
def write_keys(s: Any, row: int) -> None:
    """Write the keys of a request's full blocks (`SegmentContent.block_keys`)."""
    request, size = requests(s)[row], policies(s)[0].block_size
    blocks = (request.prompt + request.limit) // size
    if request.segments == 0:
        for index in range(blocks):
            table_keys(s)[request.place + index] = ~((row << _INDEX_BITS) + index)
        return
    if request.segments < 0:
        for index in range(blocks):
            table_keys(s)[request.place + index] = segment_ids(s)[request.segments_at + index]
        return
    done = 0
    for segment in range(request.segments):
        at = request.segments_at + segment
        beyond = blocks
        if segment < request.segments - 1:
            beyond = min(blocks, segment_ends(s)[at] // size)
        for index in range(done, beyond):
            table_keys(s)[request.place + index] = (segment_ids(s)[at] << _INDEX_BITS) | index
        done = max(done, beyond)
