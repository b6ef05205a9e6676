"""Every router of the table spreads requests over all replicas and stays in range."""

import pytest

from twin.engine.routers import ROUTERS
from twin.request import Request
from twin.scenario import ClusterSpec


class FakeReplica:
    load_requests = 0


@pytest.mark.parametrize("name", sorted(ROUTERS))
@pytest.mark.parametrize("replicas", [1, 2, 7])
def test_choices_are_in_range_reach_all_and_repeat(name, replicas):
    fleet = [FakeReplica() for _ in range(replicas)]
    requests = [Request(index=i, arrival_s=i, prompt_tokens=5, max_tokens=2) for i in range(200)]

    def choices():
        router = ROUTERS[name]()
        return [router.choose(request, fleet) for request in requests]

    chosen = choices()
    assert set(chosen) == set(range(replicas))
    assert chosen == choices()


@pytest.mark.parametrize("name", sorted(ROUTERS))
def test_a_scenario_can_name_it(name):
    assert ClusterSpec(router=name).router == name
