"""Belady's order is the best there is: against every choice of what to evict, on small cases."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.effort import examples
from twin.caching.accesses import BlockAccesses
from twin.caching.belady import next_uses
from twin.caching.comparison import compare_policies
from twin.caching.question import BELADY, CacheQuestion
from twin.paging.eviction import EVICTION


def accesses(*requests: list[int]) -> BlockAccesses:
    """Return look-ups of chained keys, a second between requests."""
    keys = np.array([key for request in requests for key in request], dtype=np.int64)
    offsets = np.concatenate(([0], np.cumsum([len(request) for request in requests])))
    return BlockAccesses(
        keys, offsets, np.arange(len(requests), dtype=float), 16, False, len(set(keys.tolist()))
    )


def hits(found: BlockAccesses, policy: str, capacity: int) -> int:
    policies = () if policy == BELADY else (policy,)
    question = CacheQuestion(policies, (capacity,), ttl_s=1e9, parity_tokens=32)
    return compare_policies("", found, question).replays[policy][0].hits


def most_hits(requests: list[list[int]], capacity: int) -> int:
    """Return the most prefix hits over everything that could be kept after every request."""

    @cache
    def best(place: int, kept: frozenset[int]) -> int:
        if place == len(requests):
            return 0
        request = requests[place]
        if len(request) > capacity:
            return best(place + 1, kept)
        found = next((i for i, key in enumerate(request) if key not in kept), len(request))
        others = sorted(kept.difference(request))
        room = min(len(others), capacity - len(request))
        # Keeping less never helps, so exactly as much as there is room for.
        return found + max(
            best(place + 1, frozenset(request).union(choice))
            for choice in combinations(others, room)
        )

    return best(0, frozenset())


def path(turns: list[int]) -> list[int]:
    """Return the keys from the root of a binary tree along these turns."""
    keys, node = [], 1
    for turn in turns:
        node = 2 * node + turn
        keys.append(node)
    return keys


TRACES = st.lists(
    st.lists(st.integers(0, 1), min_size=1, max_size=4).map(path), min_size=1, max_size=9
)


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(TRACES, st.integers(1, 6))
def test_nothing_beats_it_and_it_reaches_the_best(requests: list[list[int]], capacity: int) -> None:
    found, best = accesses(*requests), most_hits(requests, capacity)
    assert hits(found, BELADY, capacity) == best
    for policy in EVICTION:
        assert hits(found, policy, capacity) <= best


def test_next_uses() -> None:
    found = accesses([1, 2], [3], [1, 2, 4], [1])
    assert next_uses(found) == [2, 2, 4, 3, 4, 4, 4]


def test_what_comes_back_sooner_stays() -> None:
    found = accesses([1], [2], [3], [1], [2])
    # Two blocks: LRU has thrown 1 out when it comes back, the optimum throws 2 out.
    assert hits(found, "lru", 2) == 0
    assert hits(found, BELADY, 2) == 1


@pytest.mark.parametrize("policy", [BELADY, *sorted(EVICTION)])
def test_a_request_that_fits_exactly_and_one_that_does_not(policy: str) -> None:
    found = accesses([1, 2, 3], [1, 2, 3])
    assert hits(found, policy, 3) == 3
    assert hits(found, policy, 2) == 0
