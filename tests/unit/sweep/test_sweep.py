"""Sweeps of a small chat scenario: points, finer loads, progress, stopping, JSON."""

import json
import math

import pytest

from twin.engine import simulate
from twin.errors import InputError
from twin.load import load_scenario, read_scenario_file
from twin.load.inputs import read_inputs
from twin.report.metrics import summarise
from twin.sweep import sweep as module
from twin.sweep.answer import sweep_answer
from twin.sweep.runs import StoppedError
from twin.sweep.sweep import LoadSweep, edge, sweep_load

SMALL = {
    "workload.num_requests": 120,
    "workload.arrivals.rate": 20,
    "workload.prompt_tokens": 600,
    "workload.output_tokens": 40,
}


def swept(overrides=None, **more):
    file, base = read_scenario_file("chat-h100", {**SMALL, **(overrides or {})})
    return sweep_load(file, read_inputs(file, base, where="test"), **more)


@pytest.fixture(scope="module")
def found():
    told = []
    sweep = swept(factors=(0.5, 4, 1), progress=lambda done, total: told.append((done, total)))
    return sweep, told


def test_a_point_is_the_plain_run_at_that_load(found):
    point = next(point for point in found[0].points if point.factor == 4)
    scenario = load_scenario("chat-h100", {**SMALL, "workload.arrivals.rate": 80})
    figures = summarise(simulate(scenario))
    assert point.offered == 80
    assert point.ttft_p99_s == figures["ttft_s"]["p99"]
    assert point.slo_tpot_s == figures["slo"]["tpot_s"]
    assert point.goodput_per_s == figures["goodput_requests_per_s"]
    assert point.kv_peak == figures["kv_cache_usage"]["max"]
    assert point.bound == figures["time_by_bound"]
    assert (point.slo.met, point.queue_grows) == (figures["slo_met"], figures["queue_grows"])


def test_finer_loads_close_in_on_where_the_slo_breaks(found):
    sweep, told = found
    good, bad = edge(sweep.points)
    assert good.slo.met
    assert bad.slo.met is False
    assert good.offered < bad.offered <= 1.1 * good.offered
    assert [p.offered for p in sweep.points] == sorted({p.offered for p in sweep.points})
    assert len(sweep.points) <= 3 + module.MOST_FINER
    assert [done for done, _ in told[: len(sweep.points)]] == [*range(1, len(sweep.points) + 1)]
    assert told[-1] == (len(sweep.points), len(sweep.points))


def test_no_finer_loads_where_none_is_asked_for():
    assert len(swept(factors=(0.5, 4), resolution=math.inf).points) == 2


def test_equal_loads_of_few_clients_are_run_once():
    file, base = read_scenario_file(
        "closed-loop-h100",
        {"workload.concurrency": 2, "workload.num_requests": 6, "slo.ttft_s": 10},
    )
    sweep = sweep_load(file, read_inputs(file, base, where="test"), (0.5, 0.6, 1, 1.2, 2))
    assert [(p.factor, p.offered) for p in sweep.points] == [(0.6, 1), (1, 2), (2, 4)]
    assert sweep.unit == "clients"


def test_same_bytes_again_and_back_from_json(found):
    text = json.dumps(sweep_answer(found[0]), allow_nan=False)
    assert json.dumps(sweep_answer(swept(factors=(0.5, 1, 4)))) == text
    assert LoadSweep.from_dict(json.loads(text)) == found[0]
    none = swept({"slo": {}}, factors=(1,))
    assert LoadSweep.from_dict(json.loads(json.dumps(none.as_dict()))) == none


def test_steps_are_recorded_even_where_the_scenario_says_not_to():
    point = swept({"recording": "none"}, factors=(1,)).points[0]
    assert point.kv_peak > 0
    assert sum(point.bound.values()) == pytest.approx(1)


def test_stops_before_the_next_run():
    done = []
    with pytest.raises(StoppedError):
        swept(factors=(1, 2, 3), progress=lambda n, _: done.append(n), should_stop=lambda: done)
    assert done == [1]


@pytest.mark.parametrize("factors", [(), (1.0,) * 101])
def test_no_loads_or_too_many(factors):
    with pytest.raises(InputError, match="loads; give 1 to 100 of them"):
        swept(factors=factors)


def test_a_bad_factor_is_refused_before_any_run():
    with pytest.raises(InputError, match="no multiple of a load"):
        swept(factors=(1, -1), progress=lambda *_: pytest.fail("a run was made"))
