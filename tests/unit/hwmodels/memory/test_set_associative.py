"""The simulator against caches small enough to follow by hand, and a dictionary."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.memory.access import chase, random_accesses
from hwmodels.memory.set_associative import SetAssociativeCache


def by_dictionary(lines, entries):
    """Fully associative LRU, plainly."""
    held, hits = OrderedDict(), []
    for line in lines:
        hits.append(line in held)
        held[line] = None
        held.move_to_end(line)
        if len(held) > entries:
            held.popitem(last=False)
    return hits


@given(st.lists(st.integers(0, 12), max_size=80), st.integers(1, 8))
def test_one_set_is_plain_lru(lines, ways):
    cache = SetAssociativeCache(1, ways, 32)
    hits = cache.access(np.array(lines, dtype=np.int64) * 32)
    assert hits.tolist() == by_dictionary(lines, ways)


@given(st.lists(st.integers(0, 40), max_size=80), st.integers(1, 4), st.integers(1, 4))
def test_sets_are_lru_each_for_itself(lines, sets, ways):
    hits = SetAssociativeCache(sets, ways, 1).access(np.array(lines, dtype=np.int64))
    for own in range(sets):
        mine = [i for i, line in enumerate(lines) if line % sets == own]
        assert hits[mine].tolist() == by_dictionary([lines[i] for i in mine], ways)


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(0, 60))
def test_state_stays_from_one_call_to_the_next(lines, cut):
    trace = np.array(lines, dtype=np.int64)
    whole = SetAssociativeCache(2, 2, 1).access(trace)
    cache = SetAssociativeCache(2, 2, 1)
    parts = np.concatenate([cache.access(trace[:cut]), cache.access(trace[cut:])])
    np.testing.assert_array_equal(whole, parts)


def test_sub_entries_share_a_tag_and_are_valid_one_by_one():
    cache = SetAssociativeCache(1, 1, 32, sub_entries=4)
    trace = np.array([0, 0, 32, 32, 128, 0, 32])
    assert cache.access(trace).tolist() == [False, True, False, True, False, False, False]
    assert cache.reach_bytes == 128


@pytest.mark.parametrize("hashed", [False, True])
def test_a_footprint_within_reach_misses_once_a_line(hashed):
    cache = SetAssociativeCache(1, 64, 128, hashed=hashed)
    rng = np.random.default_rng(0)
    trace = chase(64 * 128, 128, rng)
    assert cache.misses(trace) == 64
    assert cache.misses(trace) == 0


def test_a_chase_beyond_reach_misses_always():
    cache = SetAssociativeCache(1, 64, 128)
    trace = chase(65 * 128, 128, np.random.default_rng(0))
    assert cache.misses(trace) == 65
    assert cache.misses(trace) == 65


def test_a_power_of_two_stride_fights_for_one_set_unless_sets_are_hashed():
    trace = np.tile(np.arange(32) * 128 * 64, 4)
    plain = SetAssociativeCache(64, 4, 128).misses(trace)
    hashed = SetAssociativeCache(64, 4, 128, hashed=True).misses(trace)
    assert plain == trace.size
    assert hashed == 32


def test_random_accesses_hit_in_proportion():
    rng = np.random.default_rng(3)
    cache = SetAssociativeCache(64, 8, 4096, hashed=True)
    cache.access(random_accesses(4 * cache.reach_bytes, 4096, 20_000, rng))
    trace = random_accesses(4 * cache.reach_bytes, 4096, 40_000, rng)
    assert cache.misses(trace) / trace.size == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize("shape", [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0)])
def test_an_empty_cache_is_refused(shape):
    with pytest.raises(ValueError, match="at least 1"):
        SetAssociativeCache(*shape)
