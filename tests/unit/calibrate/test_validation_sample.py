"""Steps drawn from a simulation, and their batches recovered."""

import numpy as np
import pytest

from calibrate.validation.batch import Batch, batches_of
from calibrate.validation.sample import MIXED, PREFILL, RARE, in_turn, sample_steps
from twin.engine import simulate
from twin.errors import InputError
from twin.load import scenario_from
from twin.step import BatchShape

DATA = {
    "schema_version": 1,
    "llm": "llama-3.1-8b",
    "gpu": "h100_sxm",
    "workload": {
        "kind": "synthetic",
        "arrivals": {"kind": "poisson", "rate": 6},
        "num_requests": 40,
        "prompt_tokens": {"kind": "uniform", "low": 50, "high": 3000},
        "output_tokens": {"kind": "uniform", "low": 1, "high": 60},
    },
}


@pytest.fixture(scope="module")
def scenario():
    return scenario_from(DATA)


@pytest.fixture(scope="module")
def result(scenario):
    return simulate(scenario)


def test_weights_add_up_to_one_and_strata_have_their_share_of_gpu_time(result):
    sample = sample_steps(result, 24, seed=3)
    assert len(sample.steps) == 24
    assert sum(step.weight for step in sample.steps) == pytest.approx(1)
    assert sample.covered_share == pytest.approx(1)
    assert sum(sample.shares.values()) == pytest.approx(1)
    for name, share in sample.shares.items():
        mine = sum(step.weight for step in sample.steps if step.stratum == name)
        assert mine == pytest.approx(share)
    mixed = (result.steps.decode_tokens > 0) & (result.steps.prefill_tokens > 0)
    busy_s = result.steps.busy_s
    assert sample.shares[MIXED] == pytest.approx(busy_s[mixed].sum() / busy_s.sum())


def test_every_kind_of_batch_is_drawn(result):
    sample = sample_steps(result, 24, seed=0)
    drawn = {step.stratum for step in sample.steps}
    assert drawn == set(sample.shares)
    assert {MIXED, PREFILL} < drawn
    assert any(name.startswith("decode 2-3 x 1024-2047") for name in drawn)


def test_a_step_counts_by_its_time_within_its_stratum(result):
    sample = sample_steps(result, 30, seed=1)
    mine = [step for step in sample.steps if step.stratum == MIXED]
    assert len(mine) > 2
    ratios = [step.weight / step.simulated_s for step in mine]
    assert ratios == pytest.approx([ratios[0]] * len(mine))


def test_one_seed_one_sample(result):
    assert sample_steps(result, 12, seed=5) == sample_steps(result, 12, seed=5)
    assert sample_steps(result, 12, seed=5) != sample_steps(result, 12, seed=6)


def test_no_step_is_drawn_twice_and_there_are_never_more_than_there_were(result):
    sample = sample_steps(result, 10**5, seed=0)
    names = [(step.core, step.number) for step in sample.steps]
    assert len(set(names)) == len(names) == len(result.steps)


def test_with_fewer_steps_than_strata_the_largest_are_kept(result):
    sample = sample_steps(result, 2, seed=0)
    assert len(sample.steps) == 2
    assert sum(step.weight for step in sample.steps) == pytest.approx(1)
    assert sample.covered_share == pytest.approx(sum(sample.shares.values()))
    assert MIXED in sample.shares
    assert sample.covered_share < 1


def test_decodes_of_little_time_stand_together(result):
    many, few = (sample_steps(result, count, seed=0) for count in (400, 12))
    assert RARE in few.shares
    assert len(few.shares) < len(many.shares)
    rare = [s for name, s in few.shares.items() if name not in (MIXED, PREFILL, RARE)]
    assert min(rare) >= 0.5 / 12
    assert sum(few.shares.values()) == pytest.approx(1)


def test_each_stratum_has_its_first_turn_before_any_has_its_second(result):
    sample = sample_steps(result, 24, seed=0)
    order = in_turn(sample)
    assert sorted(order, key=id) == sorted(sample.steps, key=id)
    first = [step.stratum for step in order[: len(sample.shares)]]
    assert first == sorted(sample.shares, key=lambda name: -sample.shares[name])


def test_a_batch_is_what_the_step_had(scenario, result):
    sample = sample_steps(result, 40, seed=2)
    found = batches_of(scenario, [(step.core, step.number) for step in sample.steps])
    rows = np.array([step.number for step in sample.steps])  # of one core
    for row, step in zip(rows, sample.steps, strict=True):
        batch = found[step.core, step.number]
        assert len(batch.decodes) == result.steps.decode_tokens[row]
        assert sum(query for query, _ in batch.chunks) == result.steps.prefill_tokens[row]
        assert batch.seqs <= result.steps.running[row]
        blocks = sum(-(-kv // result.block_size) for kv in batch.contexts)
        assert blocks <= result.steps.used_blocks[row]


def test_steps_of_every_replica_are_found(scenario):
    two = scenario_from({**DATA, "cluster": {"replicas": 2}})
    sample = sample_steps(simulate(two), 24, seed=0)
    assert {step.core for step in sample.steps} == {0, 1}
    found = batches_of(two, [(step.core, step.number) for step in sample.steps])
    for step in sample.steps:
        batch = found[step.core, step.number]
        assert bool(batch.decodes) == (step.stratum != PREFILL)
        assert bool(batch.chunks) == (step.stratum in (MIXED, PREFILL))


def test_a_run_without_steps_is_refused():
    nothing = scenario_from({**DATA, "horizon_s": 1e-3})
    with pytest.raises(InputError, match="no step was simulated"):
        sample_steps(simulate(nothing), 4, seed=0)


def test_a_batch_has_the_shape_that_the_twin_prices():
    batch = Batch((100, 7), ((30, 50), (2, 9)), 3)
    assert batch.shape == BatchShape(((30, 50), (2, 9)), 2, 107, 100, 3, 7)
    assert (batch.tokens, batch.seqs, batch.kv_tokens) == (34, 4, 166)
    assert batch.contexts == (100, 7, 50, 9)


def test_only_the_engine_that_takes_every_step_shows_its_plans(scenario):
    with pytest.raises(ValueError, match="watch goes with reference"):
        simulate(scenario, watch=lambda core, plan: None)
