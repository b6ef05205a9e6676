"""Every objective: a finite value of a run, better when less is lost, its direction and unit."""

import math

import pytest

from tests.unit.search.problems import problem
from twin.search.evaluate import Evaluator
from twin.search.objectives import OBJECTIVES

CALM = {"workload.arrivals.rate": 2}
# One request at a time, of hundreds that come at once.
CROWDED = {"workload.arrivals.rate": 200, "workload.num_requests": 300, "policy.max_num_seqs": 1}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_value_is_finite_and_prefers_the_better_run(name):
    row = OBJECTIVES[name]
    assert row.name == name
    assert row.title
    assert row.unit
    values = [
        Evaluator(problem(overrides, objectives=(name,))).evaluate({}).objectives[name]
        for overrides in (CALM, CROWDED)
    ]
    assert all(math.isfinite(value) and value >= 0 for value in values)
    if name not in ("p99_itl_s", "joules_per_token", "usd_per_mtok"):
        calm, crowded = values
        assert calm > crowded if row.direction == "maximize" else calm < crowded


def test_unit_without_a_price():
    row = OBJECTIVES["usd_per_mtok"]
    assert row.unit_at(None) == "GPU-h/Mtok"
    assert row.unit_at(2.5) == "USD/Mtok"
    assert OBJECTIVES["p99_ttft_s"].unit_at(None) == OBJECTIVES["p99_ttft_s"].unit_at(1.0) == "s"
