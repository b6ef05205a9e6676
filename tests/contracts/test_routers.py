"""Every router of the table spreads requests over replicas, stays in range and repeats itself."""

import numpy as np
import pytest
from pydantic import ValidationError

from twin.cluster import ROUTER_KINDS, ClusterSpec
from twin.engine.routers import ROUTERS
from twin.request import Request, SegmentContent


class FakeReplica:
    """Keeps whatever it is given."""

    def __init__(self, index):
        self.index = index
        self.load_requests = self.load_tokens = 0
        self.prefixes = set()

    def give(self, request):
        self.load_requests += 1
        self.load_tokens += request.prompt_tokens
        if request.content is not None:
            self.prefixes.add(request.content.ids)

    def cached_prefix_tokens(self, request):
        held = request.content is not None and request.content.ids in self.prefixes
        return request.prompt_tokens - 1 if held else 0


def requests(count):
    return [
        Request(
            i,
            float(i),
            5 + i % 3,
            2,
            session=i,
            content=SegmentContent((i,), (5,)) if i % 2 else None,
        )
        for i in range(count)
    ]


def router_named(name):
    spec = ClusterSpec(router=name).router
    return ROUTERS[name](spec, np.random.default_rng(5))


def chosen_of(name, replicas, asked):
    router, fleet = router_named(name), [FakeReplica(3 * i) for i in range(replicas)]
    places = []
    for request in asked:
        places.append(router.choose(request, fleet))
        fleet[places[-1]].give(request)
    return places


@pytest.mark.parametrize("name", sorted(ROUTERS))
@pytest.mark.parametrize("replicas", [1, 2, 7])
def test_choices_are_in_range_reach_all_and_repeat(name, replicas):
    chosen = chosen_of(name, replicas, requests(300))
    assert set(chosen) == set(range(replicas))
    assert chosen == chosen_of(name, replicas, requests(300))


@pytest.mark.parametrize("name", sorted(ROUTERS))
def test_replicas_may_come_and_go_between_choices(name):
    router, fleet = router_named(name), [FakeReplica(i) for i in range(6)]
    rng = np.random.default_rng(7)
    for request in requests(200):
        there = [replica for replica in fleet if rng.random() < 0.5] or fleet[:1]
        there[router.choose(request, there)].give(request)


@pytest.mark.parametrize("name", sorted(ROUTERS))
def test_a_scenario_can_name_it(name):
    by_name, in_full = ClusterSpec(router=name), ClusterSpec(router={"kind": name})
    assert by_name.router == in_full.router
    assert by_name.router.kind == name


def test_scenarios_can_name_no_other():
    assert sorted(ROUTER_KINDS) == sorted(ROUTERS)
    with pytest.raises(ValidationError):
        ClusterSpec(router="fastest")
