"""Rules of the block pool, each just before and at its limit."""

import pytest

from twin.errors import InputError
from twin.paging.block_pool import BlockPool


def take(pool: BlockPool, count: int) -> list[int]:
    blocks: list[int] = []
    pool.allocate(count, blocks)
    return blocks


def cached(pool: BlockPool, keys: list[int]) -> list[int]:
    """Allocate a block for each key and make it findable."""
    blocks = take(pool, len(keys))
    pool.cache_full(blocks, keys, range(len(keys)))
    return blocks


def test_one_block_is_the_null_block() -> None:
    pool = BlockPool(5, caching=False)
    assert (pool.usable, pool.num_free) == (4, 4)
    assert take(pool, 4) == [1, 2, 3, 4]
    assert pool.num_free == 0
    with pytest.raises(ValueError, match="1 blocks asked for, 0 free"):
        pool.allocate(1, [])


def test_a_refused_allocation_changes_nothing() -> None:
    pool = BlockPool(4, caching=True)
    blocks: list[int] = []
    with pytest.raises(ValueError):
        pool.allocate(4, blocks)
    assert (blocks, pool.num_free, pool.free_order()) == ([], 3, [1, 2, 3])


@pytest.mark.parametrize("num_gpu_blocks", [1, 0, -3])
def test_a_pool_needs_two_blocks(num_gpu_blocks: int) -> None:
    with pytest.raises(InputError, match="null block"):
        BlockPool(num_gpu_blocks, caching=False)
    assert BlockPool(2, caching=False).usable == 1


def test_unknown_eviction_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="did you mean 'lru'"):
        BlockPool(8, caching=True, eviction="lruu")


def test_without_caching_freed_blocks_come_back_tail_first_at_the_front() -> None:
    pool = BlockPool(10, caching=False)
    first, second = take(pool, 3), take(pool, 2)
    pool.free(first)
    assert pool.free_order() == [3, 2, 1, 6, 7, 8, 9]
    pool.free(second)
    assert pool.free_order() == [5, 4, 3, 2, 1, 6, 7, 8, 9]
    assert take(pool, 3) == [5, 4, 3]


def test_unhashed_blocks_go_first_and_hashed_ones_last() -> None:
    pool = BlockPool(8, caching=True)
    blocks = take(pool, 5)
    pool.cache_full(blocks, [100, 101, 102], range(3))
    pool.free(blocks)
    # Unhashed 5, 4 in front of the untouched 6, 7; hashed 3, 2, 1 behind: the tail goes first.
    assert pool.free_order() == [5, 4, 6, 7, 3, 2, 1]


def test_least_recently_freed_is_evicted_first() -> None:
    pool = BlockPool(7, caching=True)
    old, new = cached(pool, [1, 2, 3]), cached(pool, [11, 12, 13])
    pool.free(old)
    pool.free(new)
    assert take(pool, 2) == [3, 2]
    assert pool.longest_hit([1, 2, 3], 3) == [1]
    assert pool.longest_hit([11, 12, 13], 3) == new


def test_allocation_forgets_what_a_block_held() -> None:
    pool = BlockPool(4, caching=True)
    pool.free(cached(pool, [7]))
    assert take(pool, 2) == [2, 3]
    assert pool.longest_hit([7], 1) == [1]
    assert take(pool, 1) == [1]
    assert pool.longest_hit([7], 1) == []


def test_a_hit_on_a_free_block_takes_it_from_the_middle() -> None:
    pool = BlockPool(6, caching=True)
    blocks = cached(pool, [1, 2, 3])
    pool.free(blocks)
    assert pool.free_order() == [4, 5, 3, 2, 1]
    hits = pool.longest_hit([1, 2, 9], 3)
    assert hits == [1, 2]
    assert pool.count_unheld(hits) == 2
    pool.hold(hits)
    assert pool.free_order() == [4, 5, 3]
    assert pool.num_free == 3
    assert pool.count_unheld(hits) == 0


def test_a_shared_block_is_free_only_when_its_last_holder_lets_go() -> None:
    pool = BlockPool(4, caching=True)
    blocks = cached(pool, [1, 2])
    pool.hold(blocks)
    pool.free(blocks)
    assert pool.num_free == 1
    assert [pool.references[block] for block in blocks] == [1, 1]
    pool.free(blocks)
    assert pool.num_free == 3


def test_a_lookup_takes_the_twin_cached_first_and_then_the_next() -> None:
    pool = BlockPool(8, caching=True)
    first, second, third = cached(pool, [5]), cached(pool, [5]), cached(pool, [5])
    assert pool.longest_hit([5], 1) == first
    pool.free(second)
    pool.free(first)
    pool.free(third)
    # Free order: 4, 5, 6, 7, then second, first, third.
    take(pool, 5)
    assert pool.longest_hit([5], 1) == first
    take(pool, 1)
    assert pool.longest_hit([5], 1) == third
    take(pool, 1)
    assert pool.longest_hit([5], 1) == []


def test_a_twin_cached_again_stands_last() -> None:
    pool = BlockPool(5, caching=True)
    first, second = cached(pool, [5]), cached(pool, [5])
    pool.free(first)
    assert take(pool, 3) == [3, 4, 1]
    assert pool.longest_hit([5], 1) == second
    pool.cache_full([1], [5], range(1))
    assert pool.longest_hit([5], 1) == second


def test_a_lookup_stops_at_the_first_miss_and_at_its_limit() -> None:
    pool = BlockPool(8, caching=True)
    blocks = cached(pool, [1, 2, 3])
    assert pool.longest_hit([1, 9, 3], 3) == blocks[:1]
    assert pool.longest_hit([1, 2, 3], 2) == blocks[:2]
    assert pool.longest_hit([1, 2, 3], 0) == []
    assert pool.longest_hit([], 5) == []


def test_without_caching_nothing_is_found() -> None:
    pool = BlockPool(4, caching=False)
    pool.cache_full(take(pool, 1), [1], range(1))
    assert pool.longest_hit([1], 1) == []
