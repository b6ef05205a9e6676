"""What `twin cache` compares, and what it says of it."""

from pathlib import Path

import pytest

from tests.unit.caching.traces import SESSIONS, written
from twin.caching.accesses import accesses_of
from twin.caching.capacities import capacities_from
from twin.caching.comparison import compare_policies, default_capacities
from twin.caching.question import BELADY, CacheQuestion
from twin.errors import InputError
from twin.paging.eviction import EVICTION
from twin.workload.readers import read_trace


def test_partial_blocks_count_among_a_traces_own_only(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, [(0, 600, [1, 2]), (1000, 1100, [1, 3, 4])]))
    own = accesses_of(trace)
    assert (own.num_lookups, own.num_distinct, own.own_blocks, own.largest) == (5, 4, True, 3)
    assert own.reuse == pytest.approx(1 / 5)
    full = accesses_of(trace, 512)
    assert (full.num_lookups, full.num_distinct, full.own_blocks) == (3, 2, False)
    fine = accesses_of(trace, 16)
    assert (fine.num_lookups, fine.num_distinct) == (37 + 68, 37 + 68 - 32)
    with pytest.raises(InputError, match="no prompt fills a block of 2048 tokens"):
        accesses_of(trace, 2048)


def test_other_processes_give_the_same(tmp_path: Path) -> None:
    accesses = accesses_of(read_trace(written(tmp_path, SESSIONS)))
    question = CacheQuestion(tuple(EVICTION), (2, 4), ttl_s=20)
    here, there = (compare_policies("t", accesses, question, jobs=jobs) for jobs in (1, 2))
    assert here.as_dict() == there.as_dict()
    assert list(here.replays) == [*EVICTION, BELADY]


def test_refused_requests_miss_and_are_told(tmp_path: Path) -> None:
    accesses = accesses_of(read_trace(written(tmp_path, SESSIONS)))
    found = compare_policies("t", accesses, CacheQuestion(("lru",), (2, 3)))
    assert [replayed.refused for replayed in found.replays["lru"]] == [3, 1]
    assert "refused" in found.notes[-1]
    assert "3 at 2, 1 at 3" in found.notes[-1]


def test_capacities(tmp_path: Path) -> None:
    accesses = accesses_of(read_trace(written(tmp_path, SESSIONS)))
    assert accesses.num_distinct == 6
    assert default_capacities(accesses) == (1, 3, 6)
    token_bytes = 2**20
    assert capacities_from("all, 4,2,4", accesses, 0) == (2, 4, 6)
    assert capacities_from("1GiB", accesses, token_bytes) == (2,)
    for text, message in (
        ("1GiB", "name one with --llm"),
        ("0", "'0' is 0 blocks"),
        ("12x", "not a size in bytes"),
        ("99999999", "give 1 to 10,000,000 blocks"),
        ("", "not a size in bytes"),
    ):
        with pytest.raises(InputError, match=message):
            capacities_from(text, accesses, 0)
    with pytest.raises(InputError, match="'1MiB' is 0 blocks"):
        capacities_from("1MiB", accesses, token_bytes)
