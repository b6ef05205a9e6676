import math
from dataclasses import fields

import numpy as np
import pytest

from tests.unit.telemetry.pool.scarce import ENGINES, scarce
from twin.engine.run import simulate
from twin.telemetry.pool.history import MOST_INTERVALS, MOST_ROWS, pool_history
from twin.telemetry.pool.recomputation import Recomputation
from twin.telemetry.pool.samples import KINDS, PoolSamples


def _bytes(table):
    columns = [getattr(table, field.name) for field in fields(table) if field.name != "name"]
    return [column.tobytes() for column in columns]


def _everything(result):
    steps = result.steps
    columns = (steps.scheduled_s, steps.start_s, steps.end_s, steps.busy_s, steps.used_blocks,
               steps.preempted, steps.running, steps.waiting, steps.prefill_tokens)  # fmt: skip
    return (
        _bytes(result.requests),
        [column.tobytes() for column in columns],
        result.itl_s.tobytes(),
        result.prefix,
        result.simulated_s,
    )


@pytest.mark.parametrize("name", ENGINES)
def test_a_run_that_is_watched_is_the_same_bit_for_bit(name):
    scenario = scarce(**ENGINES[name])
    plain = simulate(scenario, engine="reference")
    instants = np.linspace(0, plain.simulated_s, 40).tolist()
    samples = PoolSamples(instants, 0, 10)
    watched = simulate(scenario, engine="reference", watch=Recomputation(), look=samples)
    samples.finish()
    assert _everything(watched) == _everything(plain)
    assert len(samples.states) == 40
    assert samples.states[:, 0].max() > 0


@pytest.mark.parametrize("name", ENGINES)
def test_blocks_are_neither_lost_nor_counted_twice(name):
    scenario = scarce(**ENGINES[name])
    history = pool_history(scenario)
    assert history.states.shape == (MOST_INTERVALS + 1, 3)
    assert (history.states >= 0).all()
    assert set(history.states.sum(axis=1).tolist()) == {history.usable_blocks}
    if name == "sglang":
        assert history.cells is None
        return
    rows = min(MOST_ROWS, history.usable_blocks)
    assert history.cells.shape == (MOST_INTERVALS + 1, rows, len(KINDS))
    assert history.first_block[0] == 0
    assert history.first_block[-1] == history.usable_blocks
    by_kind = dict(zip(KINDS, history.cells.sum(axis=1).T, strict=True))
    assert (by_kind["shared"] + by_kind["owned"] == history.states[:, 0]).all()
    assert (by_kind["cached"] == history.states[:, 1]).all()
    assert (history.cells.sum(axis=2) == np.diff(history.first_block)).all()


@pytest.mark.parametrize("name", ENGINES)
def test_what_is_owned_is_what_the_steps_say(name):
    scenario = scarce(**ENGINES[name])
    history, steps = pool_history(scenario), simulate(scenario).steps
    own = steps.replica == history.core
    before = np.searchsorted(steps.scheduled_s[own], history.edges_s, side="right") - 1
    used = steps.used_blocks[own][np.maximum(before, 0)]
    # Between two steps requests can only let go.
    inside = before >= 0
    assert (history.states[inside, 0] <= used[inside]).all()
    assert (history.states[inside, 0] == used[inside]).mean() > 0.5
    assert history.states[-1, 0] == 0 or before[-1] < own.sum()


@pytest.mark.parametrize("name", ENGINES)
def test_every_preemption_is_there_and_every_hit(name):
    scenario = scarce(**ENGINES[name])
    history, result = pool_history(scenario), simulate(scenario)
    assert len(history.losses) == result.requests.preemptions.sum() > 0
    by_request = np.bincount(
        [loss.request.index for loss in history.losses], minlength=len(result.requests)
    )
    assert by_request.tolist() == result.requests.preemptions.tolist()
    assert history.queries_tokens.sum() == result.prefix.queries
    assert history.hits_tokens.sum() == result.prefix.hits
    times = [loss.at_s for loss in history.losses]
    assert times == sorted(times)
    assert all(loss.stalled_s > 0 or math.isnan(loss.stalled_s) for loss in history.losses)
    busy_s = float(result.steps.busy_s.sum())
    assert 0 < history.recomputed_s < busy_s


def test_tokens_computed_twice_are_all_that_steps_compute_beyond_need():
    # Without a prefix cache each position of a finished request is computed once, but for those.
    scenario = scarce(**ENGINES["vllm, no cache"])
    history, result = pool_history(scenario), simulate(scenario)
    needed = result.requests.prompt_tokens + result.requests.output_tokens - 1
    computed = result.steps.prefill_tokens.sum() + result.steps.decode_tokens.sum()
    assert history.recomputed_tokens == computed - needed.sum() > 0


def test_the_prefix_cache_spares_recomputation():
    cached = pool_history(scarce(policy={"async_scheduling": False}))
    lost = pool_history(scarce(**ENGINES["vllm, no cache"]))
    each = [history.recomputed_tokens / len(history.losses) for history in (cached, lost)]
    assert each[0] < each[1]


def test_nothing_is_lost_where_there_is_room():
    history = pool_history(scarce(policy={"num_gpu_blocks": 5000}))
    assert history.losses == ()
    assert (history.recomputed_tokens, history.recomputed_s) == (0, 0.0)
    assert history.states[:, 2].min() > 0


def test_no_step_no_history():
    assert pool_history(scarce(horizon_s=1e-4)) is None


def test_sampled_recording_changes_nothing():
    full, sampled = pool_history(scarce()), pool_history(scarce(recording="sampled"))
    assert sampled.losses == full.losses
    assert (sampled.states == full.states).all()


def test_the_core_that_preempts_most_is_shown():
    two = scarce(cluster={"replicas": 2, "router": "random"}, seed=3)
    history, steps = pool_history(two), simulate(two).steps
    lost = [int(steps.preempted[steps.replica == core].sum()) for core in (0, 1)]
    assert lost[0] != lost[1]
    assert history.core == lost.index(max(lost))
    assert history.cores == 2


def test_an_engine_that_skips_steps_shows_no_states():
    with pytest.raises(ValueError, match="look too"):
        simulate(scarce(), look=lambda core, now_s, scheduler: None)
