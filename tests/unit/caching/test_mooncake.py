"""Mooncake's traces: block reuse, and the optimum above every policy."""

from pathlib import Path

import pytest

from twin.caching.accesses import BlockAccesses, accesses_of
from twin.caching.comparison import compare_policies, default_capacities
from twin.caching.question import BELADY, CacheQuestion
from twin.paging.eviction import EVICTION
from twin.workload.readers import read_trace

# (requests, block look-ups, different blocks): counted from the files' hash_ids alone.
COUNTS = {
    "conversation": (12_031, 288_500, 182_790),
    "synthetic": (3_993, 121_877, 43_924),
}
REUSE = {"conversation": 0.366, "synthetic": 0.640}
# Shares of the different blocks that a pool holds.
IN_A_TEST = {"conversation": (8,), "synthetic": (32, 4)}


@pytest.fixture(scope="module", params=sorted(COUNTS))
def trace(request: pytest.FixtureRequest, data_dir: Path) -> tuple[str, BlockAccesses]:
    name = request.param
    path = data_dir / "traces" / f"mooncake_{name}.jsonl"
    return name, accesses_of(read_trace(path))


def test_lru_with_room_for_all_hits_what_is_used_again(trace: tuple[str, BlockAccesses]) -> None:
    name, accesses = trace
    lookups = (accesses.num_requests, accesses.num_lookups, accesses.num_distinct)
    assert lookups == COUNTS[name]
    assert accesses.reuse == pytest.approx(REUSE[name], abs=0.0005)
    assert (accesses.own_blocks, accesses.block_tokens) == (True, 512)
    question = CacheQuestion(("lru",), (accesses.num_distinct,))
    found = compare_policies(name, accesses, question)
    assert found.hit_rate("lru", 0) == found.hit_rate(BELADY, 0) == accesses.reuse


def assert_none_beats_the_optimum(accesses: BlockAccesses, capacities: tuple[int, ...]) -> None:
    found = compare_policies("", accesses, CacheQuestion(tuple(EVICTION), capacities))
    places = range(len(capacities))
    for policy in EVICTION:
        assert all(found.below_optimum(policy, place) >= 0 for place in places)
    best = [found.hit_rate(BELADY, place) for place in places]
    assert best == sorted(best)
    assert found.below_optimum("lru", 0) > 0.01


def test_no_policy_beats_the_optimum(trace: tuple[str, BlockAccesses]) -> None:
    name, accesses = trace
    capacities = tuple(accesses.num_distinct // share for share in IN_A_TEST[name])
    assert_none_beats_the_optimum(accesses, capacities)


@pytest.mark.audit
def test_no_policy_beats_the_optimum_at_any_capacity(trace: tuple[str, BlockAccesses]) -> None:
    accesses = trace[1]
    assert_none_beats_the_optimum(accesses, (accesses.largest - 1, *default_capacities(accesses)))


def test_blocks_of_sixteen_tokens_are_full_ones(data_dir: Path) -> None:
    path = data_dir / "traces" / "mooncake_synthetic.jsonl"
    trace = read_trace(path)
    accesses = accesses_of(trace, 16)
    assert accesses.num_lookups == int((trace.prompt_tokens // 16).sum())
    assert not accesses.own_blocks
    # What prompts share are whole blocks of 512 tokens, but for the last of them.
    assert accesses.reuse == pytest.approx(0.66, abs=0.01)
