"""Results leave the process that made them whole: what was put off is made."""

import copy

import numpy as np
import pytest

from twin.engine import simulate
from twin.errors import InputError
from twin.load import load_scenario

FEW = {"workload.num_requests": 30}


@pytest.mark.parametrize("engine", ["reference", "interpreted"])
def test_a_copy_is_equal(engine):
    result = simulate(load_scenario("chat-h100", FEW), engine=engine)
    other = copy.copy(result)
    assert type(copy.copy(result.steps)).__name__ == "StepTable"
    np.testing.assert_array_equal(other.itl_s, result.itl_s)
    np.testing.assert_array_equal(other.steps.start_s, result.steps.start_s)
    assert other.later_itl_s is None


def test_a_sample_says_that_it_is_one():
    result = simulate(load_scenario("chat-h100", {**FEW, "recording": "sampled"}))
    assert any("one of 100" in note for note in result.notes)
    none = simulate(load_scenario("chat-h100", {**FEW, "recording": "none"}))
    assert any("were recorded" in note for note in none.notes)


def test_every_goes_with_sampled():
    with pytest.raises(InputError, match="every"):
        load_scenario("chat-h100", {"recording": {"every": 5}})
