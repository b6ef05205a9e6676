"""Why a candidate cannot be, before it is simulated."""

from dataclasses import replace

import pytest

from tests.unit.search.problems import problem
from twin.search.feasibility import check
from twin.search.problem import Limits
from twin.search.proposal import propose, suggested, value_at

TWO = Limits(gpus=2)
LOSSY = Limits(gpus=1, max_kv_error=0.03, max_weight_error=0.03)


@pytest.mark.parametrize(
    ("engine", "overrides", "limits", "candidate", "says"),
    [
        ("vllm", {}, TWO, {"cluster.replicas": 2, "parallelism.tp": 2}, "4 GPUs in all"),
        ("vllm", {}, TWO, {"policy.max_num_seqs": 2048, "policy.max_num_batched_tokens": 256},
         "below max_num_seqs"),
        ("vllm", {}, TWO, {"policy.kv_cache_dtype": "fp8"}, "loses 2.7%, more than the 0.0%"),
        ("vllm", {}, LOSSY, {"policy.quantization": "int4"}, "lose 10.0%, more than the 3.0%"),
        ("vllm", {}, TWO, {"policy.block_size": 0}, "greater than 0"),
        ("trtllm", {"gpu": "a100_sxm"}, LOSSY, {"policy.kv_cache_dtype": "fp8"}, "no FP8 on"),
        ("sglang", {}, TWO, {"policy.sglang.page_size": 64, "policy.max_num_batched_tokens": 1000},
         "no whole number of pages"),
    ],
)  # fmt: skip
def test_reason(engine, overrides, limits, candidate, says):
    found = problem(overrides, engine=engine, limits=limits)
    reason = check(found, candidate)
    assert reason is not None
    assert says in reason
    assert "\n" not in reason


@pytest.mark.parametrize(
    ("limits", "candidate"),
    [
        (TWO, {"cluster.replicas": 2}),
        (TWO, {"policy.max_num_seqs": 256, "policy.max_num_batched_tokens": 256}),
        (LOSSY, {"policy.kv_cache_dtype": "fp8", "policy.quantization": "int8"}),
    ],
)
def test_just_within_the_limits(limits, candidate):
    assert check(problem(limits=limits), candidate) is None


def test_autoscaler_counts_by_its_most_replicas():
    scaler = {"cluster": {"autoscaler": {"target": 8, "max_replicas": 4}}}
    found = problem(scaler, limits=Limits(gpus=4))
    assert check(found, {}) is None
    assert check(replace(found, limits=Limits(gpus=3)), {}) is not None


def test_proposal_leaves_out_defaults_and_knobs_without_effect():
    found = problem(limits=TWO)
    asked = []

    def at_default(knob):
        asked.append(knob.key)
        return value_at(found, {}, knob.key)

    assert propose(found, at_default) == {}
    assert "cluster.router" not in asked
    assert "policy.cudagraph_mode" in asked

    def turned(knob):
        return {"cluster.replicas": 2.0, "policy.scheduler_reserve_full_isl": False}.get(
            knob.key, value_at(found, {}, knob.key)
        )

    candidate = propose(found, turned)
    assert candidate == {"cluster.replicas": 2, "policy.scheduler_reserve_full_isl": False}
    assert isinstance(candidate["cluster.replicas"], int)
    told = suggested(found, candidate)
    assert told["cluster.router"] == "round_robin"
    alone = suggested(found, {"cluster.replicas": 1})
    assert "cluster.router" not in alone


def test_retry_of_another_kind_drops_what_it_has_not():
    retry = {"kind": "exponential", "max_attempts": 5, "factor": 3.0}
    found = problem({"clients": {"timeout_s": 5, "retry": retry}})
    for kind in ("none", "fixed", "adaptive"):
        assert check(found, {"clients.retry.kind": kind}) is None


def test_lifetime_goes_with_its_eviction():
    ttl = {"policy.eviction": "ttl", "policy.eviction_ttl_s": 60}
    assert check(problem(ttl, engine="any"), {"policy.eviction": "arc"}) is None
