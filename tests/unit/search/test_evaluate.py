"""One candidate's figures: those of a plain run, once, from files that are read once."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.search.problems import SMALL, problem
from tests.unit.search.test_slices import trace_file
from twin.engine.run import simulate
from twin.load.scenario_file import load_scenario
from twin.recording import RecordingSpec
from twin.report.metrics import summarise
from twin.search import evaluate as module
from twin.search.energy import energy_j
from twin.search.evaluate import Evaluator, prepare, recording_of
from twin.search.objectives import OBJECTIVES
from twin.search.piece import Piece
from twin.search.problem import Limits

ALL = tuple(OBJECTIVES)
TWO = Limits(gpus=2)


def counted(monkeypatch):
    """Count simulations."""
    runs = []

    def spy(*args, **keywords):
        runs.append(args)
        return simulate(*args, **keywords)

    monkeypatch.setattr(module, "simulate", spy)
    return runs


def test_figures_are_those_of_a_plain_run():
    found = problem(objectives=ALL)
    mine = Evaluator(found).evaluate({"policy.max_num_batched_tokens": 256}, Piece(part="all"))
    scenario = load_scenario("chat-h100", {**SMALL, "policy.max_num_batched_tokens": 256})
    assert "policy.max_num_seqs" not in mine.candidate
    plain = summarise(simulate(scenario))
    # Engines agree on it to nine digits alone.
    assert mine.figures.pop("time_by_source") == pytest.approx(plain.pop("time_by_source"))
    assert mine.figures == plain
    assert mine.meets


def test_default_that_a_smaller_budget_lowers_is_not_refused():
    assert Evaluator(problem()).evaluate({"policy.max_num_batched_tokens": 256}).infeasible is None


def test_evaluation_twice_is_equal_and_answered_from_memory(monkeypatch):
    runs = counted(monkeypatch)
    found = problem(objectives=ALL)
    candidate = {"policy.max_num_seqs": 8}
    mine = Evaluator(found)
    first, second = mine.evaluate(candidate), mine.evaluate(candidate)
    assert first == second
    assert len(runs) == 1
    assert Evaluator(found).evaluate(candidate) == first
    assert len(runs) == 2
    before = len(runs)
    mine.evaluate(candidate, Piece(seed=1))
    mine.evaluate(candidate, Piece(share=0.5))
    mine.evaluate(candidate, Piece(part="held_out"))
    assert len(runs) == before + 3


def test_equal_files_are_one_run(monkeypatch):
    runs = counted(monkeypatch)
    found = problem({"policy.max_num_seqs": 8})
    mine = Evaluator(found)
    mine.evaluate({})
    mine.evaluate({"policy.max_num_seqs": 8})
    assert len(runs) == 1


def test_traces_are_read_once(tmp_path):
    path = trace_file(tmp_path)
    found = problem({"workload": {"kind": "trace", "path": str(path), "window_s": [0, 50]}})
    mine = Evaluator(found)
    path.unlink()
    search, held_out = (mine.evaluate({}, Piece(part=part)) for part in ("search", "held_out"))
    assert search.figures["requests"] + held_out.figures["requests"] == 50
    assert mine.evaluate({"policy.max_num_seqs": 8}).infeasible is None


def test_what_cannot_be_has_a_reason():
    found = problem(limits=TWO)
    mine = Evaluator(found)
    static = mine.evaluate({"cluster.replicas": 4})
    assert static.infeasible == "4 GPUs in all are more than the 2 allowed"
    assert not static.objectives
    assert not static.meets
    late = mine.evaluate({"policy.gpu_memory_utilization": 0.2})
    assert late.infeasible is not None
    assert "KV" in late.infeasible
    assert not late.meets


def test_run_that_serves_nothing_is_told():
    found = problem({"workload.prompt_tokens": 9000, "policy.max_model_len": 4096},
                    objectives=("usd_per_mtok",))  # fmt: skip
    nothing = Evaluator(found).evaluate({})
    assert nothing.infeasible == "too little was served to tell cost of a million output tokens"


def test_only_what_objectives_read_is_recorded():
    assert recording_of(problem()).kind == "none"
    assert recording_of(problem(objectives=("p99_itl_s",))).kind == "full"
    assert recording_of(problem(objectives=("joules_per_token",))).kind == "none"
    pools = problem({"cluster": {"pools": [{"replicas": 1}]}}, objectives=("joules_per_token",))
    assert recording_of(pools).kind == "full"


def test_objectives_count_every_gpu_of_every_replica():
    one, two = (
        Evaluator(problem({"cluster.replicas": n}, objectives=ALL, limits=TWO)).evaluate({})
        for n in (1, 2)
    )
    assert two.objectives["goodput_per_gpu_hour"] < 0.6 * one.objectives["goodput_per_gpu_hour"]
    assert two.objectives["usd_per_mtok"] > 1.8 * one.objectives["usd_per_mtok"]
    priced = Evaluator(problem(objectives=("usd_per_mtok",), usd_per_gpu_hour=3.0)).evaluate({})
    assert priced.objectives["usd_per_mtok"] == pytest.approx(3 * one.objectives["usd_per_mtok"])


def test_unserved_and_late_requests_are_violations():
    limits = {"slo": {"ttft_s": 0.2, "percentile": 90}, "workload.num_requests": 100}
    kept = Evaluator(problem(limits)).evaluate({})
    assert kept.meets
    assert set(kept.violations) == {"ttft_s", "unserved"}
    assert kept.violations["unserved"] == -1.0
    slow = Evaluator(problem(limits)).evaluate({"policy.max_num_seqs": 1})
    assert slow.violations["ttft_s"] > 0
    assert not slow.meets
    short = {**limits, "policy.max_model_len": 600, "workload.prompt_tokens": 1000}
    lost = Evaluator(problem(short, objectives=("p99_ttft_s",))).evaluate({})
    assert lost.violations["unserved"] == pytest.approx((1 - 0.1) / 0.1)
    assert not lost.meets


def test_losing_requests_is_no_gain():
    base = {"workload.num_requests": 100, "workload.arrivals.rate": 100, "slo.percentile": 50}
    waits = {**base, "policy.max_num_seqs": 1}
    gives_up = {**waits, "clients": {"ttft_timeout_s": 1}}
    ttft = [
        Evaluator(problem(each, objectives=("p99_ttft_s",))).evaluate({}).objectives["p99_ttft_s"]
        for each in (base, gives_up)
    ]
    assert ttft[1] > 1 > ttft[0]


def test_request_that_tried_again_waited_from_its_first_attempt():
    retry = {"kind": "fixed", "max_attempts": 9, "delay_s": 1.0}
    found = problem(
        {
            "workload.num_requests": 60,
            "workload.arrivals.rate": 1000,
            "policy.max_num_seqs": 4,
            "clients": {"ttft_timeout_s": 1, "retry": retry},
        },
        objectives=("p99_ttft_s",),
    )
    evaluation = Evaluator(found).evaluate({})
    assert evaluation.figures["clients"]["attempts"] > 60
    assert evaluation.objectives["p99_ttft_s"] > 2  # the last attempt alone waits at most 1 s
    assert evaluation.figures["ttft_s"]["p99"] <= 1


def test_horizon_leaves_open_requests_out():
    cut = {"horizon_s": 1.5, "workload.output_tokens": 400, "slo": {"ttft_s": 0.5}}
    evaluation = Evaluator(problem(cut)).evaluate({})
    assert evaluation.figures["unfinished"] > 10
    assert evaluation.violations["unserved"] == -1.0
    stuck = Evaluator(problem({**cut, "policy.max_num_seqs": 1})).evaluate({})
    assert stuck.violations["unserved"] > 0


def test_energy_of_one_pool_and_of_pools_agree():
    found = problem(objectives=("joules_per_token",))
    scenario = Evaluator(found).scenario({})
    full = replace(scenario, file=scenario.file.model_copy(update={"recording": RecordingSpec()}))
    result = simulate(full)
    alone = energy_j(full, result)
    idle_w, limit_w = scenario.gpu.idle_power_w, scenario.gpu.power_w
    busy_s = float(result.steps.busy_s.sum())
    assert alone == pytest.approx(idle_w * result.gpu_s + (limit_w - idle_w) * busy_s)
    pools = problem({"cluster": {"pools": [{"replicas": 1}, {"replicas": 1, "gpu": "h200_sxm"}]}},
                    objectives=("joules_per_token",), limits=TWO)  # fmt: skip
    each = Evaluator(pools)
    run = each.scenario({})
    result = simulate(run)
    paid = result.fleet.paid_s
    busy = [float(result.steps.busy_s[result.steps.replica == core].sum()) for core in (0, 1)]
    by_hand = (121.7 * paid[0] + 578.3 * busy[0]) + (128.0 * paid[1] + 572.0 * busy[1])
    assert energy_j(run, result) == pytest.approx(by_hand)
    with pytest.raises(ValueError, match="every step"):
        energy_j(run, replace(result, stride=0, itl_s=np.empty(0), later_itl_s=None))


def test_prices_are_shared_without_changing_a_bit():
    found = problem(objectives=ALL)
    shared = Evaluator(found)
    for candidate in ({}, {"policy.enforce_eager": True}, {"policy.max_num_batched_tokens": 128}):
        mine = shared.evaluate(candidate)
        plain = simulate(shared.scenario(candidate), engine=module.quickest_engine())
        assert dict(mine.figures) == summarise(plain)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_turning_graphs_off_wins_nothing_by_time(engine):
    with_prefill = {"workload.prompt_tokens": 2000}
    found = problem(with_prefill, engine=engine, objectives=("p99_ttft_s", "p99_itl_s"))
    runs = Evaluator(found)
    graphs, eager = (runs.evaluate({"policy.enforce_eager": off}) for off in (False, True))
    for name in ("p99_ttft_s", "p99_itl_s"):
        assert eager.objectives[name] >= graphs.objectives[name]


def test_small_search_compiles_nothing(monkeypatch):
    runs = counted(monkeypatch)
    monkeypatch.setattr(module, "is_kept", lambda: False)
    prepare(problem(), 10)
    assert not runs
