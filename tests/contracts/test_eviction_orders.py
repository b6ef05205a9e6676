"""Every registered eviction order keeps the contract of `EvictionOrder`."""

import random
from itertools import islice
from typing import Any, get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.properties.effort import examples
from twin.paging.block_pool import BlockPool
from twin.paging.eviction import EVICTION
from twin.paging.eviction.setup import EvictionSetup
from twin.policy import Eviction

NAMES = sorted(EVICTION)
NUM_BLOCKS = 14


def test_policies_can_name_all_of_them() -> None:
    assert sorted(get_args(Eviction)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_starts_with_all_blocks_but_the_null_block_in_order(name: str) -> None:
    assert list(EVICTION[name](EvictionSetup(5))) == [1, 2, 3, 4]
    assert EVICTION[name](EvictionSetup(5)).pop(3) == [1, 2, 3]


@pytest.mark.parametrize("name", NAMES)
def test_blocks_without_content_go_before_all_others_and_the_tail_first(name: str) -> None:
    pool = BlockPool(9, caching=True, eviction=name)
    blocks: list[int] = []
    pool.allocate(6, blocks)
    pool.cache_full(blocks, [1, 2, 3, 4], range(4))
    pool.free(blocks)
    assert pool.free_order()[:4] == [6, 5, 7, 8]
    assert sorted(pool.free_order()[4:]) == [1, 2, 3, 4]


@pytest.mark.parametrize("name", NAMES)
def test_of_one_chain_the_tip_goes_first(name: str) -> None:
    pool = BlockPool(5, caching=True, eviction=name)
    for keys in ([10, 11], [10, 11, 12, 13]):  # the second finds what the first computed
        admit(pool, keys)
    assert pool.free_order() == [4, 3, 2, 1]


def admit(pool: BlockPool, keys: list[int], *, release: bool = True) -> list[int]:
    """Give a request its blocks, all of them full; return them."""
    blocks = pool.longest_hit(keys, len(keys))
    found = len(blocks)
    pool.hold(blocks)
    pool.allocate(len(keys) - found, blocks)
    pool.cache_full(blocks, keys, range(found, len(keys)))
    if release:
        pool.free(blocks)
    return blocks


PATHS = st.lists(st.integers(0, 1), min_size=1, max_size=6)


def keys_of(path: list[int]) -> list[int]:
    """Return chained keys: each stands for the way from the root of a binary tree to its node."""
    keys, node = [], 1
    for turn in path:
        node = 2 * node + turn
        keys.append(node)
    return keys


class Pool(RuleBasedStateMachine):
    """A pool under random requests, checked after every step; subclasses name the order."""

    name = "lru"

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        setup = EvictionSetup(NUM_BLOCKS, lambda: self.now_s, ttl_s=5.0, parity_blocks=3.0)
        self.pool = BlockPool(NUM_BLOCKS, caching=True, eviction=EVICTION[self.name](setup))
        self.held: list[tuple[list[int], list[int]]] = []

    @rule(path=PATHS, tail=st.integers(0, 2), cached=st.booleans())
    def admit(self, path: list[int], tail: int, cached: bool) -> None:
        pool, keys = self.pool, keys_of(path)
        blocks = pool.longest_hit(keys, len(keys))
        found = len(blocks)
        if len(keys) - found + tail > pool.num_free - pool.count_unheld(blocks):
            return
        pool.hold(blocks)
        pool.allocate(len(keys) - found + tail, blocks)
        if cached:
            pool.cache_full(blocks, keys, range(found, len(keys)))
        # Not cached yet: it may turn out a twin of what another request computes meanwhile.
        self.held.append((blocks, keys if not cached else []))
        assert len(set(blocks)) == len(blocks)

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0), findable=st.booleans())
    def let_go(self, which: int, findable: bool) -> None:
        blocks, keys = self.held.pop(which % len(self.held))
        if keys and findable:
            found = sum(self.key_of(block) is not None for block in blocks)
            self.pool.cache_full(blocks, keys, range(found, len(keys)))
        self.pool.free(blocks)

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0))
    def grow(self, which: int) -> None:
        if self.pool.num_free:
            foreseen = next(self.pool.free_blocks())
            blocks, _ = self.held[which % len(self.held)]
            self.pool.allocate(1, blocks)
            assert blocks[-1] == foreseen

    @rule(count=st.integers(1, NUM_BLOCKS))
    def take_as_foreseen(self, count: int) -> None:
        """One by one or at once, blocks come as they were listed."""
        count = min(count, self.pool.num_free)
        foreseen, taken = list(islice(self.pool.free_blocks(), count)), list[int]()
        for _ in range(count // 2):
            self.pool.allocate(1, taken)
        self.pool.allocate(count - count // 2, taken)
        assert taken == foreseen
        self.held.append((taken, []))

    @rule(seconds=st.sampled_from([0.0, 1.0, 4.0, 6.0]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def key_of(self, block: int) -> Any:
        return self.pool.cache.key_of[block] if self.pool.cache else None

    @invariant()
    def free_and_held_are_all_there_is(self) -> None:
        listed = list(self.pool.free_blocks())
        held = {block for blocks, _ in self.held for block in blocks}
        assert len(listed) == len(set(listed)) == self.pool.num_free
        assert held.isdisjoint(listed)
        assert held | set(listed) == set(range(1, NUM_BLOCKS))

    @invariant()
    def listing_changes_nothing(self) -> None:
        assert self.pool.free_order() == self.pool.free_order()


def machine(name: str) -> type[Pool]:
    return type(f"Pool_{name}", (Pool,), {"name": name})


@pytest.mark.parametrize("name", NAMES)
def test_random_requests(name: str) -> None:
    run_state_machine_as_test(
        machine(name),
        settings=settings(
            max_examples=examples(60), stateful_step_count=40, deadline=None, derandomize=True
        ),
    )


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"lru", "ttl"}))
def test_no_tip_is_orphaned(name: str) -> None:
    """Among what is free and was computed once, nothing goes before what hangs on it."""
    rng = random.Random(3)
    pool = BlockPool(24, caching=True, eviction=name)
    assert pool.cache is not None
    for _ in range(400):
        admit(pool, keys_of([rng.randint(0, 1) for _ in range(rng.randint(1, 9))]))
        present = {key for key in pool.cache.key_of if key is not None}
        assert all(key // 2 in present for key in present if key > 3)
