"""Judging real simulations of the built-in examples."""

import pytest

from twin.search.evaluate import Evaluator
from twin.search.judging.evaluator_runs import EvaluatorRuns
from twin.search.judging.explanation import explain
from twin.search.judging.pareto import Tried
from twin.search.judging.stretch import stretches
from twin.search.judging.verdict import judge
from twin.search.problem import Limits
from twin.search.setting import make_problem

GOODPUT, ITL = "goodput_per_gpu_hour", "p99_itl_s"


def setting(example, objective, **overrides):
    """A problem, what runs it, and its default and known-good points as trials."""
    problem = make_problem(
        example, overrides, engine="vllm", objectives=(objective,), limits=Limits(gpus=1)
    )
    evaluator = Evaluator(problem)
    return problem, EvaluatorRuns(evaluator, experts=False)


def tried(runs, *candidates):
    return [Tried(number, runs.evaluate(c)) for number, c in enumerate(candidates)]


LIGHT = {"workload.arrivals.rate": 0.5, "workload.num_requests": 120}
BUSY = {"workload.num_requests": 80}


def test_the_default_is_kept_where_nothing_helps():
    """At one request in two seconds everybody is served in time, whatever the policy."""
    problem, runs = setting("chat-h100", GOODPUT, **LIGHT)
    candidates = [
        {},
        {"policy.max_num_batched_tokens": 2048},
        {"policy.long_prefill_token_threshold": 1024},
        {"policy.max_num_seqs": 64},
        {"policy.gpu_memory_utilization": 0.95},
        {"policy.block_size": 64},
        {"policy.enable_prefix_caching": False},
    ]
    found = judge(problem, tried(runs, *candidates), runs, experts=False)
    assert found.decision == "keep the default"
    assert found.candidate == {}


def test_a_tiny_gain_on_the_trials_is_not_reported():
    """Even if a trial is said to be 2 % better: fresh runs show nothing."""
    problem, runs = setting("chat-h100", GOODPUT, **LIGHT)
    trials = tried(runs, {}, {"policy.max_num_batched_tokens": 2048})
    lucky = trials[1].evaluation
    lucky.objectives[GOODPUT] *= 1.02
    found = judge(problem, trials, runs, experts=False)
    assert found.decision == "keep the default"


def test_a_smaller_step_shortens_gaps_between_tokens():
    problem, runs = setting("summarisation-a100", ITL, **BUSY)
    small = {"policy.max_num_batched_tokens": 1024}
    trials = tried(runs, {}, small)
    found = judge(problem, trials, runs, experts=False)
    assert found.decision == "adopt", found.sentence
    assert found.candidate == small
    gain = found.chosen.gain(ITL)
    assert gain.paired.relative > 0.3
    assert gain.paired.pairs == 5
    explained = explain(problem, trials, found, runs, experts=False, most_runs=4)
    assert explained.binding.what in ("arrivals", "compute", "HBM", "KV capacity")
    assert len(explained.neighbours) == 4


def test_lengths_are_those_of_the_runs():
    _, runs = setting("summarisation-a100", ITL, **BUSY)
    trials = tried(runs, {}, {"policy.max_num_batched_tokens": 1024})
    found = stretches(trials, None, runs)
    whole = runs.whole({}).summary
    assert found["held_out"].length.simulated_s == pytest.approx(whole["simulated_s"])
    for name in ("search", "held_out"):
        assert found[name].length.requests == 80
        assert 0 < found[name].length.traffic_s < found[name].length.simulated_s
    assert found["confirming"] is None


@pytest.fixture
def trace(tmp_path):
    """A request every half a second for 200 s, every other prompt long."""
    path = tmp_path / "trace.csv"
    rows = [
        f"2023-11-16 18:{15 + i // 120:02d}:{i // 2 % 60:02d}.{5 * (i % 2)}000000,"
        f"{12000 if i % 2 else 300},150"
        for i in range(400)
    ]
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(rows) + "\n")
    return path


def test_a_recording_is_judged_by_stretches(trace):
    problem, runs = setting("chat-h100", ITL, **{"workload.path": str(trace)})
    assert runs.recorded
    trials = tried(runs, {}, {"policy.long_prefill_token_threshold": 512})
    found = judge(problem, trials, runs, experts=False, seeds=3)
    assert found.decision == "adopt", found.sentence
    assert found.chosen.over == "stretches"
    assert found.chosen.gain(ITL).paired.pairs == 6
    assert runs.whole({}).summary["requests"] == 120


def test_goodput_is_told_at_other_limits():
    _, runs = setting("chat-h100", GOODPUT, **{**LIGHT, "slo.ttft_s": 0.03})
    at = runs.whole({}).at_limits
    assert set(at) == {"tight", "loose"}
    assert at["tight"][GOODPUT] < at["loose"][GOODPUT]
