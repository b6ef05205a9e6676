from dataclasses import replace

import pytest

from app.answers.capacity.sizing import SizingAnswer, sizing, sizing_answer
from app.answers.kinds import KINDS
from app.answers.setup import Setup
from twin.errors import InputError
from twin.forecast_error import forecast_error
from twin.report.slo import Slo
from twin.sweep.judged import Judged
from twin.sweep.sizing import SizedRun, Sizing


def _run(replicas, met, slower, faster):
    return SizedRun(replicas, Judged(met, slower, faster), 0.9, None, 0.99, 10.0, 0.5, 0)


FOUND = Sizing(
    name="toy",
    gpu="h100_sxm",
    gpus_a_replica=1,
    slo=Slo(ttft_s=1.0, tpot_s=None, percentile=99.0),
    error=forecast_error(experts=False),
    most=64,
    replicas=3,
    low=2,
    high=4,
    runs=(_run(1, False, False, False), _run(2, False, False, True), _run(3, True, False, True)),
)


def test_the_sentence_gives_gpus_objective_and_the_errors_interval():
    assert sizing_answer(FOUND).sentence == (
        "3 H100s for P99 TTFT 1 s; 2–4 within the forecast's error."
    )
    assert "±21.5 %" in sizing_answer(FOUND).error


def test_gpus_of_a_replica_are_counted():
    found = sizing_answer(replace(FOUND, gpus_a_replica=4))
    assert found.sentence == (
        "12 H100s for P99 TTFT 1 s (3 replicas of 4); 8–16 within the forecast's error."
    )
    assert found.table["GPUs"] == ["4", "8", "12"]


def test_one_number_throughout_is_said_to_be_sure():
    found = sizing_answer(replace(FOUND, low=3, high=3))
    assert found.sentence.endswith("the forecast's error does not change that.")


def test_no_upper_end_is_open():
    found = sizing_answer(replace(FOUND, high=None))
    assert "2 to more than 64 within" in found.sentence


def test_none_that_meets_it_is_said():
    found = sizing_answer(replace(FOUND, replicas=None, low=40, high=None))
    assert found.sentence.startswith("Not even 64 H100s meet P99 TTFT 1 s; 40 may,")


def test_where_no_run_was_held_out_there_is_no_interval():
    found = sizing_answer(FOUND, "no serving run on l40s was held out")
    assert found.sentence == "3 H100s for P99 TTFT 1 s; error unknown."
    assert found.error == "Error unknown: no serving run on l40s was held out."
    assert found.table["Meets the SLO"] == ["no", "no", "yes"]


def test_the_table_says_what_error_may_turn():
    table = sizing_answer(FOUND).table
    assert table["Meets the SLO"] == ["no", "no, within error", "yes, within error"]
    assert "P99 TPOT" not in table


def test_it_is_simulated_with_progress():
    changes = {"workload.num_requests": 200, "workload.arrivals.rate": 40, "slo.ttft_s": 1.0}
    said = []
    asked = {"setup": Setup("chat-h100", None, changes).as_dict()}
    answer = SizingAnswer(**KINDS["size"](asked, lambda *told: said.append(told)))
    assert said[-1][0] == said[-1][1]
    assert answer.table["Meets the SLO"][-1].startswith("yes")
    least = [row for row in answer.table["Meets the SLO"] if row.startswith("yes")]
    number = answer.table["GPUs"][answer.table["Meets the SLO"].index(least[0])]
    assert answer.sentence.startswith(f"{number} H100")


def test_without_an_objective_there_is_nothing_to_size_for():
    with pytest.raises(InputError, match="no SLO"):
        sizing(Setup("closed-loop-h100", None, {"slo.ttft_s": None, "slo.tpot_s": None}))
