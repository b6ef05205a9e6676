"""In which order the waiting queue is tried."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]


def cached(e: Any, prefix: int, tokens: int) -> None:
    """Leave a prefix of `tokens` tokens in the tree."""
    index = 1000 + len(e.states)
    e.add(tokens, 1, index=index, shared=(prefix, tokens))
    while e.scheduler.has_unfinished():
        e.turn()


def order(e: Any) -> list[int]:
    """The order in which the waiting requests are prefilled, one a turn."""
    done: list[int] = []
    while e.waiting:
        done += [index for index, _, _ in e.prefills(e.turn())]
    return done


def test_fcfs_and_lof(engine: Make) -> None:
    for policy, expected in (("fcfs", [0, 1, 2]), ("lof", [1, 2, 0])):
        e = engine(schedule_policy=policy, prefill_max_requests=1)
        for tokens in (5, 9, 9):
            e.add(20, tokens)
        assert order(e) == expected


def test_priority_goes_before_arrival(engine: Make) -> None:
    e = engine(enable_priority_scheduling=True, prefill_max_requests=1)
    for priority in (3, 1, 1):
        e.add(20, priority=priority)
    assert order(e) == [1, 2, 0]


def test_lpm_prefers_the_longest_match(engine: Make) -> None:
    e = engine(schedule_policy="lpm", prefill_max_requests=1)
    cached(e, 1, 40)
    cached(e, 2, 50)
    e.add(60, index=0)
    e.add(60, index=1, shared=(1, 40))
    e.add(60, index=2, shared=(2, 50))
    assert order(e) == [2, 1, 0]


@pytest.mark.parametrize(("cached_tokens", "expected"), [(32, [0, 2, 1]), (33, [0, 1, 2])])
def test_lpm_lets_one_compute_a_prefix_for_the_others(
    engine: Make, cached_tokens: int, expected: list[int]
) -> None:
    # 0 and 1 share 60 tokens; 1 waits unless more than 32 of them are cached.
    e = engine(schedule_policy="lpm", prefill_max_requests=1, chunked_prefill_size=-1)
    cached(e, 1, cached_tokens)
    e.add(80, index=0, shared=(1, 60))
    e.add(80, index=1, shared=(1, 60))
    e.add(80, index=2)
    first = e.prefills(e.turn())
    assert [index for index, _, _ in first] == [0]
    # `waiting` keeps the order of the pass that admitted request 0.
    assert [0, *e.waiting] == expected


@pytest.mark.parametrize(("shared", "expected"), [(31, [0, 1, 2]), (32, [0, 2, 1])])
def test_a_shared_prefix_counts_from_32_tokens_on(
    engine: Make, shared: int, expected: list[int]
) -> None:
    e = engine(schedule_policy="lpm", prefill_max_requests=1, chunked_prefill_size=-1)
    e.add(80, index=0, shared=(1, shared))
    e.add(80, index=1, shared=(1, shared))
    e.add(80, index=2)
    e.turn()
    assert [0, *e.waiting] == expected


@pytest.mark.parametrize(("waiting", "first"), [(128, 127), (129, 0)])
def test_lpm_rests_above_128_waiting(engine: Make, waiting: int, first: int) -> None:
    e = engine(schedule_policy="lpm", prefill_max_requests=1, max_total_num_tokens=20_000)
    cached(e, 1, 40)
    for index in range(waiting):
        shared = (1, 40) if index == waiting - (1 if waiting == 128 else 2) else None
        e.add(60, index=index, **({"shared": shared} if shared else {}))
    assert e.prefills(e.turn())[0][0] == first


def test_dfs_weight_follows_the_heavier_subtree(engine: Make) -> None:
    e = engine(schedule_policy="dfs-weight", prefill_max_requests=1)
    cached(e, 1, 40)
    cached(e, 2, 40)
    e.add(60, index=0)
    e.add(60, index=1, shared=(1, 40))
    e.add(60, index=2, shared=(2, 40))
    e.add(60, index=3, shared=(2, 40))
    e.turn()
    # Those that end at the root come after all children.
    assert [2, *e.waiting] == [2, 3, 1, 0]


def test_hrrn_and_shortest_prefill_first(engine: Make) -> None:
    for policy in ("hrrn", "shortest-prefill-first"):
        e = engine(schedule_policy=policy, prefill_max_requests=1)
        e.add(10, 1)
        e.add(90, index=1)
        e.add(30, index=2)
        e.turn()  # 10 tokens: both others have waited for as many
        assert order(e)[0] == 2


def test_random_is_a_shuffle_that_repeats(engine: Make) -> None:
    def run() -> list[int]:
        e = engine(schedule_policy="random", prefill_max_requests=1)
        for _ in range(12):
            e.add(20)
        return order(e)

    assert run() == run()
    assert sorted(run()) == list(range(12))
    assert run() != list(range(12))


def test_without_a_cache_lpm_is_fcfs(engine: Make) -> None:
    e = engine(schedule_policy="lpm", disable_radix_cache=True, prefill_max_requests=1)
    for prompt in (30, 20, 10):
        e.add(prompt)
    assert order(e) == [0, 1, 2]


def test_waiting_prefixes_are_touched_every_32_passes(engine: Make) -> None:
    e = engine(prefill_max_requests=1, max_total_num_tokens=5000, max_running_requests=64)
    cached(e, 1, 40)
    node = next(e.cache.tree.nodes())
    e.core.ordering_passes = 0
    for index in range(40):
        e.add(10, index=index)
    e.add(60, index=40, shared=(1, 40))
    touched = []
    for _ in range(34):
        e.turn()
        touched.append(node.touched)
    changes = [turn for turn in range(1, 34) if touched[turn] != touched[turn - 1]]
    assert changes == [32]


def test_the_prefix_of_a_waiting_request_outlives_an_older_use(engine: Make) -> None:
    for refresh, survivor in ((True, 1), (False, 2)):
        e = engine(waiting_prefix_refresh=refresh, max_running_requests=1)
        cached(e, 1, 40)
        cached(e, 2, 40)
        e.add(10, index=0)
        e.add(60, index=1, shared=(1, 40))
        e.core.ordering_passes = 0
        e.turn()  # the only slot goes to request 0
        assert e.waiting == [1]
        e.cache.tree.evict(1)
        kept = {index for index in (1, 2) if _is_cached(e, index)}
        assert kept == {survivor}


def _is_cached(e: Any, prefix: int) -> bool:
    keys = [(prefix << 24) | index for index in range(40)]
    return bool(e.cache.tree.match(keys, 40)[1])
