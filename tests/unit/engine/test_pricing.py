"""Prices that runs share: bounded, and the same as each would pay alone."""

import pytest

from hwmodels.scaled import RememberingCostModel
from twin.engine import pricing, simulate
from twin.engine.pricing import Pricing
from twin.load import load_scenario


def test_memory_begins_anew_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = load_scenario("chat-h100", {"workload.num_requests": 40})
    shared = Pricing()
    first = shared.of(scenario)
    assert first is not None
    plain = simulate(scenario)
    assert (simulate(scenario, costs=first).requests.finish_s == plain.requests.finish_s).all()
    model = first.cost_model
    assert isinstance(model, RememberingCostModel)
    assert len(model) > 1
    assert shared.of(scenario) is first
    monkeypatch.setattr(pricing, "MOST_PRICES", len(model) - 1)
    again = shared.of(scenario)
    assert again is not None
    assert again is not first
    assert (simulate(scenario, costs=again).requests.finish_s == plain.requests.finish_s).all()
