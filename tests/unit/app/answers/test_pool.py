import json

import pytest

from app.answers.forecast.certainty import Certainty
from app.answers.forecast.forecast import drawn
from app.answers.kinds import KINDS
from app.answers.memory.pool import (
    MOST_LISTED,
    memory_figures,
    memory_verdict,
    pool_from,
    recomputation_error,
    told,
    what_it_took,
)
from app.answers.setup import Setup
from tests.unit.telemetry.pool.scarce import scarce
from twin.engine.run import simulate
from twin.telemetry.pool.history import pool_history


@pytest.fixture(scope="module")
def scenario():
    return scarce()


@pytest.fixture(scope="module")
def history(scenario):
    return pool_history(scenario)


@pytest.fixture(scope="module")
def found(history):
    return told(history)


@pytest.fixture(scope="module")
def forecast(scenario):
    return drawn(scenario, simulate(scenario))


def test_an_answer_survives_the_way_from_its_process(found):
    assert pool_from(json.loads(json.dumps(found.as_dict()))) == found


def test_rows_travel_once(found):
    charts = found.as_dict()["charts"]
    assert all(chart["rows"] == [] for chart in charts.values())
    assert len(charts["pool_map"]["spec"]["data"]["values"]) == 8000


def test_the_verdict_says_what_preemptions_cost(forecast, found, history):
    words = memory_verdict(forecast.summary, found)
    assert words.startswith("KV peaks at ")
    assert f"of 99 blocks; {len(history.losses)} preemptions cost " in words
    assert words.endswith(" of recomputation.")
    assert memory_verdict(forecast.summary, None).endswith(
        f"{forecast.summary['preemptions']} preemptions."
    )
    one = {**forecast.summary, "preemptions": 1}
    assert "; 1 preemption costs " in memory_verdict(one, found)
    calm = {**forecast.summary, "preemptions": 0}
    assert memory_verdict(calm, found).endswith("; no request is preempted.")
    several = {**forecast.summary, "replicas": 2}
    assert "of a replica's blocks" in memory_verdict(several, found)
    nothing = drawn(scarce(), simulate(scarce(horizon_s=1e-4)))
    assert "No request reached the engine" in memory_verdict(nothing.summary, told(None))


def test_those_preempted_most_come_first(found, history):
    rows = found.most_preempted
    times = [row["Preemptions"] for row in rows]
    assert times == sorted(times, reverse=True)
    assert len(rows) <= MOST_LISTED
    assert sum(times) == len(history.losses)
    assert sum(row["Recomputed (tokens)"] for row in rows) == history.recomputed_tokens
    assert f"{found.recomputed_tokens:,} tokens were computed twice" in what_it_took(found)


def test_figures_have_a_band_or_a_baseline(forecast, found):
    alone = {figure.title: figure for figure in memory_figures(forecast, None, found)}
    assert list(alone) == ["KV peak", "Prefix-cache hits", "Preemptions", "Recomputation"]
    assert " to " in alone["Recomputation"].band
    assert "Recomputation" not in {f.title for f in memory_figures(forecast, None, None)}
    roomy = scarce(policy={"num_gpu_blocks": 5000})
    before = drawn(roomy, simulate(roomy))
    beside = {figure.title: figure for figure in memory_figures(forecast, before, found)}
    assert (beside["Preemptions"].before, beside["Recomputation"].before) == (0, 0.0)
    calm = memory_figures(before, None, told(pool_history(roomy)))[-1]
    assert (calm.value, calm.band) == ("0 s", "nothing was lost")


def test_where_the_error_comes_from_is_said(forecast):
    assert "held-out error of mean TPOT" in recomputation_error(forecast.certainty)
    unknown = Certainty(None, None, 0, "nobody measured", experts=False)
    assert recomputation_error(unknown) == "Error unknown: nobody measured."


def test_it_is_a_question_for_a_process():
    heard = []
    setup = Setup("chat-h100", changes={"workload.num_requests": 20})
    answer = KINDS["pool"]({"setup": setup.as_dict()}, lambda *said: heard.append(said))
    assert pool_from(json.loads(json.dumps(answer))).preemptions == 0
    assert heard[-1] == (20, 20, "requests")
