"""Requests given up and replicas that crash, at random instants."""

import numpy as np
import pytest

from tests.properties.chaos import simulate_in_chaos
from tests.properties.random_scenarios import random_scenario
from twin.load import scenario_from

IN_A_TEST = 60


def assert_same(plain, fast):
    for name in ("requests", "steps"):
        ours, theirs = getattr(fast, name), getattr(plain, name)
        for column in type(ours).__dataclass_fields__:
            np.testing.assert_array_equal(
                getattr(ours, column), getattr(theirs, column), err_msg=f"{name}.{column}"
            )
    np.testing.assert_array_equal(fast.itl_s, plain.itl_s)
    assert fast.prefix == plain.prefix
    assert fast.simulated_s == plain.simulated_s


@pytest.mark.parametrize("seed", range(IN_A_TEST))
def test_both_engines_take_them_alike(seed, monkeypatch):
    scenario = scenario_from(random_scenario(seed))
    chaos = {"mean_gap_s": (0.02, 0.1, 0.5)[seed % 3], "crashes": (0.0, 0.3)[seed % 2]}
    plain, struck = simulate_in_chaos(scenario, "reference", monkeypatch, seed, **chaos)
    fast, also = simulate_in_chaos(scenario, "fast", monkeypatch, seed, **chaos)
    assert struck == also
    assert_same(plain, fast)
