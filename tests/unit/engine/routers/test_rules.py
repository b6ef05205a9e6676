"""What each router chooses, on replicas whose loads are given."""

from dataclasses import dataclass

import numpy as np
import pytest

from twin.cluster import ClusterSpec
from twin.engine.routers import ROUTERS
from twin.request import Request, SegmentContent

CONTENT = SegmentContent((1,), (100,))


@dataclass
class Stub:
    index: int
    load_requests: int = 0
    load_tokens: int = 0
    cached: int = 0

    def cached_prefix_tokens(self, request):
        return self.cached


def router(spec, seed=1):
    found = ClusterSpec(router=spec).router
    return ROUTERS[found.kind](found, np.random.default_rng(seed))


def ask(index=0, **more):
    return Request(index, 0.0, 100, 2, **more)


def stubs(**columns):
    return [
        Stub(i, **dict(zip(columns, row, strict=True)))
        for i, row in enumerate(zip(*columns.values(), strict=True))
    ]


def test_least_requests_and_least_tokens_take_the_first_of_the_least():
    fleet = stubs(load_requests=[3, 1, 1], load_tokens=[5, 90, 70])
    assert router("least_requests").choose(ask(), fleet) == 1
    assert router("least_tokens").choose(ask(), fleet) == 0


def test_power_of_two_never_takes_the_most_loaded_of_several():
    fleet = stubs(load_requests=[1, 9, 2])
    chooser = router("power_of_two")
    chosen = [chooser.choose(ask(i), fleet) for i in range(300)]
    assert set(chosen) == {0, 2}
    # Two of three are drawn: the least loaded is among them two times in three.
    assert chosen.count(0) / 300 == pytest.approx(2 / 3, abs=0.1)


def test_random_is_even():
    chooser = router("random")
    chosen = [chooser.choose(ask(i), stubs(load_requests=[0, 5])) for i in range(2000)]
    assert chosen.count(1) / 2000 == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("loads", "cached", "expected"),
    [
        ([5, 2, 0], [90, 0, 0], 0),  # the cache decides
        ([5, 2, 0], [90, 0, 90], 2),  # of equal ones the least loaded
        ([5, 2, 0], [30, 0, 0], 2),  # just the threshold is too little
        ([5, 2, 0], [31, 0, 0], 0),
        ([64, 2, 0], [90, 0, 0], 0),  # 64 more: still in balance
        ([65, 2, 0], [90, 0, 0], 2),
        ([165, 110, 110], [90, 0, 0], 0),  # 65 more, but not even twice as many
    ],
)
def test_prefix_aware_weighs_the_cache_against_the_load(loads, cached, expected):
    fleet = stubs(load_requests=loads, cached=cached)
    assert router("prefix_aware").choose(ask(content=CONTENT), fleet) == expected


def test_prefix_aware_heeds_its_parameters():
    fleet = stubs(load_requests=[5, 2], cached=[90, 0])
    spec = {"kind": "prefix_aware", "balance_abs_threshold": 2, "balance_rel_threshold": 2.0}
    assert router(spec).choose(ask(content=CONTENT), fleet) == 1
    assert router({**spec, "balance_rel_threshold": 2.5}).choose(ask(content=CONTENT), fleet) == 0
    strict = {"kind": "prefix_aware", "cache_threshold": 0.9}
    assert router(strict).choose(ask(content=CONTENT), fleet) == 1


def test_a_request_without_content_goes_to_the_least_loaded():
    assert router("prefix_aware").choose(ask(), stubs(load_requests=[5, 2], cached=[9, 0])) == 1


def test_a_session_stays_until_its_replica_is_gone():
    sticky, fleet = router("session_sticky"), stubs(load_requests=[5, 0, 3])
    assert sticky.choose(ask(session=4), fleet) == 1
    fleet[1].load_requests = 99
    assert sticky.choose(ask(session=4), fleet) == 1
    assert sticky.choose(ask(session=4), [fleet[0], fleet[2]]) == 1  # place 1: replica 2
    assert sticky.choose(ask(session=4), fleet) == 2  # its new home
    assert sticky.choose(ask(), fleet) == 2  # no session: the least loaded
    assert sticky.choose(ask(session=8), fleet) == 2
