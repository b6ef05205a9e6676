"""Random scenarios at other loads: the load grows with the factor, and once it changes nothing."""

import random
from itertools import pairwise
from pathlib import Path

import pytest

from tests.properties.random_scenarios import random_scenario
from twin.engine import simulate
from twin.load.inputs import read_inputs
from twin.load.resolve import resolve_with
from twin.load.validation import validate
from twin.scenario import ScenarioFile
from twin.sweep.offered import offered
from twin.sweep.runs import Runs
from twin.sweep.scaling import scaled

SEEDS = 40


def _read(seed):
    file = validate(ScenarioFile, random_scenario(seed), f"seed {seed}")
    return file, read_inputs(file, Path.cwd(), where="test")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_load_grows_with_the_factor(seed):
    file, inputs = _read(seed)
    rng = random.Random(seed)
    factors = sorted({1.0, *(10 ** rng.uniform(-1, 1) for _ in range(6))})
    loads = [offered(scaled(file, factor), inputs).value for factor in factors]
    assert all(low <= high for low, high in pairwise(loads))
    if offered(file, inputs).unit == "req/s":
        for factor, load in zip(factors, loads, strict=True):
            assert load == pytest.approx(factor * offered(file, inputs).value)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_once_its_load_is_the_plain_scenario_bit_for_bit(seed):
    file, inputs = _read(seed)
    assert scaled(file, 1.0).model_dump_json() == file.model_dump_json()
    shared = Runs(inputs).run(scaled(file, 1.0))[1]
    plain = simulate(resolve_with(file, inputs, where="test"))
    for column in ("arrival_s", "scheduled_s", "first_token_s", "finish_s"):
        ours, theirs = getattr(shared.requests, column), getattr(plain.requests, column)
        assert ours.tobytes() == theirs.tobytes()
    assert shared.itl_s.tobytes() == plain.itl_s.tobytes()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_scaling_back_gives_the_load_back(seed):
    file, inputs = _read(seed)
    if offered(file, inputs).unit == "clients":
        return
    there = scaled(scaled(file, 4.0), 0.25)
    assert offered(there, inputs).value == pytest.approx(offered(file, inputs).value)
