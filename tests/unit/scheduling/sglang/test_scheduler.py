"""What the engine loop sees of the scheduler, and coarse keys."""

from collections.abc import Callable
from typing import Any

from twin.request import RequestState
from twin.scheduling import SCHEDULERS
from twin.scheduling.sglang import SglangLimits

Make = Callable[..., Any]


def test_it_is_in_the_table_under_its_engine() -> None:
    limits = SglangLimits(1000, 400, 16)
    scheduler = SCHEDULERS["sglang"](limits)
    assert (scheduler.queue_depth, scheduler.launches_empty) == (2, False)
    limits = SglangLimits(1000, 400, 16, overlap=False)
    assert SCHEDULERS["sglang"](limits).queue_depth == 1


def test_blocks_are_pages(engine: Make) -> None:
    e = engine(page_size=10)
    assert (e.scheduler.usable_blocks, e.scheduler.free_blocks) == (100, 100)
    e.add(25, max_tokens=2)
    e.turn()
    assert e.scheduler.free_blocks == 97
    e.turn()
    # 26 tokens: two whole pages stay cached, which counts as free.
    assert e.cache.tree.evictable == 20
    assert e.scheduler.free_blocks == 100


def test_counts_of_running_and_waiting(engine: Make) -> None:
    e = engine(max_running_requests=1)
    e.add(20, max_tokens=2)
    e.add(20)
    assert (e.scheduler.num_running, e.scheduler.num_waiting) == (0, 2)
    e.turn()
    assert (e.scheduler.num_running, e.scheduler.num_waiting) == (1, 1)
    assert e.scheduler.has_unfinished()


def test_an_arrival_right_after_the_last_end_keeps_the_ratio(engine: Make) -> None:
    e = engine()
    e.add(20, max_tokens=3)
    e.turns(3)
    low = e.core.ratio.now
    assert low < e.core.ratio.init
    e.add(20)  # before the idle turn
    e.turn()
    assert e.core.ratio.now == low


def test_a_prompt_is_found_from_the_second_decision_after_it(engine: Make) -> None:
    e = engine(overlap=True)
    e.add(40, shared=(1, 30))
    e.turn()
    e.add(40, shared=(1, 30))
    assert e.prefills(e.turn()) == [(1, 0, 40)]  # its twin's result is on its way
    e.add(40, shared=(1, 30))
    assert e.prefills(e.turn()) == [(2, 30, 10)]


def test_duplicates_of_the_inserter_are_freed(engine: Make) -> None:
    e = engine()
    e.add(40, shared=(1, 30))
    e.add(40, shared=(1, 30))
    e.turn()
    assert e.cache.free == 1000 - 50
    assert e.cache.tree.protected == 50


def test_an_answer_can_be_evicted_without_its_prompt(engine: Make) -> None:
    e = engine()
    e.add(20, max_tokens=6)
    while e.scheduler.has_unfinished():
        e.turn()
    assert [node.depth for node in e.cache.tree.nodes()] == [20, 25]
    assert e.cache.tree.evict(1) == 5


def test_coarse_keys_find_whole_keys_and_allocate_single_tokens(engine: Make) -> None:
    found: dict[int, tuple[int, int, int]] = {}
    for key_tokens in (0, 16):
        e = engine(radix_key_tokens=key_tokens)
        e.add(70, max_tokens=1, shared=(1, 64))
        e.turns(2)
        kept = e.cache.tree.evictable
        e.add(90, shared=(1, 64))
        e.add(70, index=5, shared=(1, 64))
        launch = e.turn()
        found[key_tokens] = (kept, e.prefills(launch)[0][1], e.cache.free)
    # A prefix that ends with a key is found in full; of the rest, what fills no key is forgotten.
    assert found[0] == (70, 64, 1000 - 70 - 26 - 6)
    assert found[16] == (64, 64, 1000 - 64 - 26 - 6)


def test_a_request_without_content_hits_only_itself(engine: Make) -> None:
    e = engine()
    e.add(30, max_tokens=1)
    e.turns(2)
    e.add(30, max_tokens=1)
    assert e.prefills(e.turn()) == [(1, 0, 30)]
    again = RequestState(e.states[0].request)
    e.scheduler.add(again)
    assert e.prefills(e.turn()) == [(0, 29, 1)]
