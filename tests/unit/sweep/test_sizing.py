import json

import pytest

from twin.engine import simulate
from twin.errors import InputError
from twin.load import load_scenario, read_scenario_file
from twin.load.inputs import read_inputs
from twin.report.metrics import summarise
from twin.sweep.runs import StoppedError
from twin.sweep.sizing import Sizing, size_replicas
from twin.sweep.sizing_words import sizing_sentences

BUSY = {
    "workload.num_requests": 200,
    "workload.arrivals.rate": 120,
    "workload.prompt_tokens": 900,
    "workload.output_tokens": 60,
    "slo": {"ttft_s": 0.3, "tpot_s": 0.03},
}


def sized(overrides=None, **more):
    file, base = read_scenario_file("chat-h100", {**BUSY, **(overrides or {})})
    return size_replicas(file, read_inputs(file, base, where="test"), **more)


@pytest.fixture(scope="module")
def found():
    return sized()


def met(replicas):
    scenario = load_scenario("chat-h100", {**BUSY, "cluster.replicas": replicas})
    return summarise(simulate(scenario))["slo_met"]


def test_so_many_meet_it_and_one_fewer_does_not(found):
    assert found.replicas > 1
    assert met(found.replicas)
    assert not met(found.replicas - 1)
    assert found.run(found.replicas).slo.met
    assert found.run(found.replicas - 1).slo.met is False


def test_the_error_band_holds_the_answer(found):
    assert found.low <= found.replicas <= found.high
    assert found.run(found.low).slo.met_if_faster
    assert found.run(found.high).slo.met_if_slower
    assert not found.run(found.high - 1).slo.met_if_slower


def test_gpus_are_those_of_all_ranks(found):
    assert found.gpus == found.replicas
    tp = sized({"parallelism.tp": 2})
    assert tp.gpus == 2 * tp.replicas


def test_in_words(found):
    first, second, third = sizing_sentences(found)
    n = found.replicas
    assert first == (
        f"{n} x h100_sxm ({n} replicas of 1) meet the SLO (P99 TTFT 300 ms and P99 TPOT 30 ms)."
    )
    assert second.startswith("Within the forecast's error: ")
    assert "P90 held-out error: TTFT ±21.5 %, TPOT ±9.00 %, n = 449" in second
    assert third.startswith(f"With {n - 1} replica")


def test_too_few_are_allowed(found):
    none = sized(most=found.replicas - 1)
    assert (none.replicas, none.gpus, none.high) == (None, None, None)
    words = sizing_sentences(none)
    assert words[0].startswith(f"No number of replicas up to {found.replicas - 1} meets the SLO")
    assert words[-1].startswith(f"With {found.replicas - 1} replica")
    exact = sized(most=found.replicas)
    assert (exact.replicas, exact.high) == (found.replicas, None)
    assert f"more than {found.replicas} replicas" in sizing_sentences(exact)[1]


def test_one_is_enough_and_none_fewer_is_told():
    one = sized({"workload.arrivals.rate": 2})
    assert (one.replicas, one.low) == (1, 1)
    assert len(sizing_sentences(one)) == 2


def test_back_from_json(found):
    text = json.dumps(found.as_dict(), allow_nan=False)
    assert Sizing.from_dict(json.loads(text)) == found
    assert json.dumps(sized().as_dict()) == text


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"slo": {}}, "there is no SLO to size for; set slo.ttft_s or slo.tpot_s"),
        ({"cluster": {"pools": [{"replicas": 2}]}}, "cluster.pools says how many"),
        (
            {"cluster": {"autoscaler": {"target": 4, "max_replicas": 4}}},
            "cluster.autoscaler says how many",
        ),
    ],
)
def test_what_cannot_be_sized(overrides, problem):
    with pytest.raises(InputError, match=problem):
        sized(overrides)


@pytest.mark.parametrize("most", [0, 1025])
def test_bounds_of_the_search(most):
    with pytest.raises(InputError, match="give 1 to 1,024"):
        sized(most=most)


def test_replicas_that_fail_by_schedule_are_there():
    failures = {"scheduled": [{"at_s": 0.5, "replica": 1, "down_s": 0.1}]}
    found = sized({"cluster": {"replicas": 2, "failures": failures}, "workload.arrivals.rate": 2})
    assert found.runs[0].replicas == 2


def test_stops_before_the_next_run():
    done = []
    with pytest.raises(StoppedError):
        sized(progress=lambda n, _: done.append(n), should_stop=lambda: done)
    assert done == [1]
