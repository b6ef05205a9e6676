"""What a problem leaves of the space, and why not the rest."""

import pytest

from tests.unit.search.problems import keys, problem, values
from twin.search.problem import Limits
from twin.search.space import SPACE

KV, WEIGHTS = "policy.kv_cache_dtype", "policy.quantization"
LOSSY = Limits(gpus=1, max_kv_error=1.0, max_weight_error=1.0)
ANY_LIMIT = {"engine": "any", "limits": LOSSY}


def test_every_knob_is_kept_or_dropped_with_a_reason():
    found = problem()
    assert keys(found) | set(found.dropped) == {knob.key for knob in SPACE}
    assert not keys(found) & set(found.dropped)
    assert all(found.dropped.values())


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_engine_searches_its_own_knobs(engine):
    found = problem(engine=engine)
    others = {"sglang", "trtllm"} - {engine}
    assert not any(key.startswith(f"policy.{other}.") for key in keys(found) for other in others)
    assert engine == "vllm" or any(key.startswith(f"policy.{engine}.") for key in keys(found))
    assert ("policy.watermark" in keys(found)) == (engine == "vllm")


def test_nothing_lossy_is_proposed_unless_allowed():
    found = problem()
    assert not {KV, WEIGHTS} & keys(found)
    assert found.dropped[KV] == "one value is left"
    assert all(not {KV, WEIGHTS} & set(start) for start in found.starts)


def test_limits_let_formats_in_by_their_error():
    some = problem(limits=Limits(gpus=1, max_kv_error=0.03, max_weight_error=0.03))
    assert values(some, KV) == ("auto", "fp8", "fp8_per_token_head", "int8_per_token_head")
    assert values(some, WEIGHTS) == (None, "fp8", "int8")
    whole = problem(limits=LOSSY)
    assert "int4_per_token_head" in values(whole, KV)
    assert "int4" in values(whole, WEIGHTS)
    assert {KV: "fp8"} in whole.starts


def test_value_of_the_scenario_stays_whatever_the_limits():
    found = problem({KV: "fp8"})
    assert values(found, KV) == ("fp8", "auto")


def test_what_no_engine_has_is_searched_for_any_alone():
    own = problem(limits=LOSSY)
    assert "int8" not in values(own, KV)
    assert "policy.eviction" not in keys(own)
    ideal = problem(**ANY_LIMIT)
    assert "int8" in values(ideal, KV)
    assert values(ideal, "policy.eviction")[0] == "lru"
    assert "policy.eviction_ttl_s" in keys(ideal)
    assert "policy.sglang.page_size" not in keys(ideal)  # vLLM's scheduler would not heed it


def test_formats_that_the_gpu_cannot_read_go():
    found = problem({"gpu": "a100_sxm"}, limits=LOSSY)
    assert "fp8" in values(found, KV)
    assert "fp8_per_token_head" not in values(found, KV)


def test_checkpoint_that_is_quantised_stays():
    found = problem({"llm": "gpt-oss-20b"}, limits=LOSSY)
    assert WEIGHTS in found.dropped


def test_tp_and_replicas_keep_to_network_and_budget():
    assert "parallelism.tp" in problem().dropped
    found = problem(limits=Limits(gpus=6))
    assert values(found, "parallelism.tp") == (1, 2, 4)
    assert values(found, "cluster.replicas") == (1, 2, 3, 4, 5, 6)
    assert "cluster.router" in keys(found)


def test_pipelines_only_where_they_may_help():
    two = Limits(gpus=2)
    assert "NVLink" in problem(limits=two).dropped["parallelism.pp"]
    assert "parallelism.pp" in keys(problem({"gpu": "l40s"}, limits=two))
    named = problem(limits=two, knobs=["parallelism.pp", "parallelism.tp"])
    assert keys(named) == {"parallelism.pp", "parallelism.tp"}


def test_what_changes_nothing_goes():
    plain = problem({"workload.prefixes": None})
    assert plain.dropped["policy.enable_prefix_caching"] == "requests share no prefixes"
    assert plain.dropped["policy.scheduling_policy"] == "all requests have one priority"
    assert plain.dropped["clients.retry.kind"] == "no client gives up"
    found = problem({"workload.priorities": {0: 1, 1: 1}, "clients": {"timeout_s": 5}})
    assert {"policy.scheduling_policy", "clients.retry.kind"} <= keys(found)
    assert "policy.enable_prefix_caching" in keys(found)


def test_need_that_cannot_be_met_drops_a_knob():
    found = problem({"policy.enable_chunked_prefill": False, "policy.max_model_len": 4096})
    key = "policy.long_prefill_token_threshold"
    assert found.dropped[key] == "policy.enable_chunked_prefill is False"


EAGER = "policy.enforce_eager"
SIZES = {
    "vllm": {"policy.cudagraph_mode", "policy.max_cudagraph_capture_size"},
    "sglang": {"policy.sglang.cuda_graph_max_bs"},
    "trtllm": {"policy.trtllm.cuda_graph_max_batch_size", "policy.trtllm.cuda_graph_padding"},
}


@pytest.mark.parametrize("engine", SIZES)
def test_sizes_of_graphs_are_asked_for_where_there_are_graphs(engine):
    found = problem(engine=engine)
    assert values(found, EAGER) == (False, True)
    sizes = {knob.key for knob in found.knobs if EAGER in knob.needs}
    assert sizes == SIZES[engine]
    assert all(knob.needs[EAGER] == (False,) for knob in found.knobs if knob.key in sizes)
    off = problem({EAGER: True}, engine=engine, knobs=sorted(SIZES[engine] | {"policy.block_size",
                  "policy.max_num_seqs"}))  # fmt: skip
    assert all(off.dropped[key] == f"{EAGER} is True" for key in SIZES[engine])


@pytest.mark.parametrize("eager", [False, True])
def test_graphs_stay_as_they_are_where_layers_were_measured_with_them(eager):
    found = problem({"gpu": "rtx_4090", "policy.max_model_len": 4096, EAGER: eager})
    assert found.dropped[EAGER] == "its layers were measured with CUDA graphs"
    assert EAGER in keys(problem({"gpu": "l40s", "policy.max_model_len": 4096}))


def test_pools_and_autoscalers_keep_their_numbers():
    pools = problem({"cluster": {"pools": [{"replicas": 2}]}}, limits=Limits(gpus=4))
    assert pools.dropped["cluster.replicas"] == "each pool has its own"
    scaled = problem(
        {"cluster": {"autoscaler": {"target": 8, "max_replicas": 4}}}, limits=Limits(gpus=4)
    )
    assert scaled.dropped["cluster.replicas"] == "the autoscaler sets it"


def test_radix_policy_by_priority_needs_priorities():
    key = "policy.sglang.radix_eviction_policy"
    assert "priority" not in values(problem(engine="sglang"), key)
    some = problem({"workload.priorities": {0: 1, 1: 1}}, engine="sglang")
    assert "priority" in values(some, key)
