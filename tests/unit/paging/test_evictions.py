"""What is particular to each eviction order, on pools small enough to follow by hand."""

import math

import pytest

from twin.llm.flops import attention_parity_tokens
from twin.llm.models import MODELS
from twin.paging.block_pool import BlockPool
from twin.paging.eviction import EVICTION
from twin.paging.eviction.setup import DEFAULT_PARITY_TOKENS, EvictionSetup


class Requests:
    """Serves requests one after another; remembers when it is."""

    def __init__(self, name: str, blocks: int, **setup: float) -> None:
        self.now_s = 0.0
        order = EVICTION[name](EvictionSetup(blocks + 1, lambda: self.now_s, **setup))
        self.pool = BlockPool(blocks + 1, caching=True, eviction=order)

    def serve(self, *keys: int) -> int:
        """Serve a request with these chained keys; return how many of them were found."""
        pool = self.pool
        blocks = pool.longest_hit(keys, len(keys))
        found = len(blocks)
        pool.hold(blocks)
        pool.allocate(len(keys) - found, blocks)
        pool.cache_full(blocks, keys, range(found, len(keys)))
        pool.free(blocks)
        return found

    @property
    def cached(self) -> set[int]:
        """Keys that can be found."""
        assert self.pool.cache is not None
        return {key for key in self.pool.cache.key_of if key is not None}


def test_fifo_does_not_care_for_hits() -> None:
    fifo, lru = Requests("fifo", 2), Requests("lru", 2)
    for each in (fifo, lru):
        for key in (1, 2, 1, 3):
            each.serve(key)
    assert (fifo.cached, lru.cached) == ({2, 3}, {1, 3})


def test_fifo_keeps_a_prefix_as_long_as_something_hangs_on_it() -> None:
    fifo = Requests("fifo", 3)
    fifo.serve(1)
    fifo.serve(2)
    fifo.serve(1, 11)
    fifo.serve(3)  # 1 is the oldest, but 11 would be lost with it
    assert fifo.cached == {1, 11, 3}


def test_lfu_keeps_what_is_hit_often_and_forgets_with_the_block() -> None:
    lfu = Requests("lfu", 2)
    for key in (1, 1, 1, 2, 3):
        lfu.serve(key)
    assert lfu.cached == {1, 3}
    for key in (2, 2, 2, 2, 3):
        lfu.serve(key)
    # 2 has three hits, 1 two, 3 none.
    assert lfu.cached == {2, 3}


def test_s3_fifo_drops_what_is_seen_once_and_takes_ghosts_into_the_main_queue() -> None:
    s3 = Requests("s3_fifo", 10)
    for key in (1, 1, 1):
        s3.serve(key)
    for key in range(2, 30):  # a scan
        s3.serve(key)
    assert s3.cached == {1, *range(21, 30)}  # nine places are left for the scan
    s3.serve(20)  # a ghost
    for key in range(30, 60):
        s3.serve(key)
    assert {1, 20} <= s3.cached


def test_one_hit_is_not_enough_for_s3_fifo() -> None:
    s3 = Requests("s3_fifo", 10)
    for key in (1, 1, *range(2, 12)):
        s3.serve(key)
    assert 1 not in s3.cached


def test_arc_resists_a_scan_and_learns() -> None:
    arc, lru = Requests("arc", 4), Requests("lru", 4)
    for each in (arc, lru):
        for key in (1, 2, 1, 2, 3, 4, 5, 6, 7):
            each.serve(key)
    assert lru.cached == {4, 5, 6, 7}
    assert arc.cached == {1, 2, 6, 7}
    # Misses of what was seen once and thrown out move its share up: what was seen twice goes.
    for key in (5, 8, 6, 9, 7, 10, 8, 11, 12, 13):
        arc.serve(key)
    assert not {1, 2} <= arc.cached


def test_cost_aware_keeps_what_is_dear_to_compute() -> None:
    def after(**setup: float) -> set[int]:
        order = Requests("cost_aware", 6, **setup)
        order.serve(1, 2, 3, 4)
        order.serve(5)
        order.serve(6)
        order.serve(7)
        return order.cached

    # Where position does not matter the oldest tip goes, else the cheap one at a sequence's start.
    assert after(parity_blocks=math.inf) == {1, 2, 3, 5, 6, 7}
    assert after(parity_blocks=2.0) == {1, 2, 3, 4, 6, 7}


def test_cost_aware_ages_what_was_used_often_long_ago() -> None:
    order, lfu = Requests("cost_aware", 2), Requests("lfu", 2)
    for each in (order, lfu):
        for _ in range(4):
            each.serve(1)
        for key in range(2, 12):
            each.serve(key)
    assert 1 in lfu.cached
    assert 1 not in order.cached


def test_ttl_just_before_and_at_its_end() -> None:
    ttl = Requests("ttl", 4, ttl_s=10.0)
    ttl.serve(1, 2)
    ttl.now_s = 9.999
    assert ttl.serve(1, 2) == 2  # and starts anew
    ttl.now_s = 19.998
    assert ttl.serve(1, 2) == 2
    ttl.now_s = 29.998
    assert ttl.serve(1, 2) == 0
    assert ttl.pool.num_free == 4


def test_ttl_takes_nothing_from_who_holds_it() -> None:
    ttl = Requests("ttl", 4, ttl_s=10.0)
    ttl.serve(1)
    held = ttl.pool.longest_hit([1], 1)
    ttl.pool.hold(held)
    ttl.now_s = 100.0
    assert ttl.pool.longest_hit([1], 1) == held
    ttl.pool.free(held)
    ttl.now_s = 109.0
    assert ttl.pool.longest_hit([1], 1) == held
    ttl.now_s = 110.0
    assert ttl.pool.longest_hit([1], 1) == []


@pytest.mark.parametrize("name", sorted(EVICTION))
def test_of_twins_both_can_go(name: str) -> None:
    """Two requests compute the same block at once; what follows hangs on either."""
    pool = BlockPool(6, caching=True, eviction=name)
    tables: list[list[int]] = [[], []]
    for table in tables:
        pool.allocate(2, table)
    for table in tables:
        pool.cache_full(table, [1, 2], range(2))
    for table in tables:
        pool.free(table)
    taken: list[int] = []
    pool.allocate(3, taken)
    assert pool.longest_hit([1], 1)
    pool.allocate(2, taken)
    assert sorted(taken) == [1, 2, 3, 4, 5]
    assert pool.longest_hit([1], 1) == []


def test_where_attention_costs_as_much_as_the_rest() -> None:
    assert attention_parity_tokens(MODELS["llama-3.1-8b"]) == DEFAULT_PARITY_TOKENS
    assert all(attention_parity_tokens(arch) > 0 for arch in MODELS.values())
