import numpy as np
import pytest

from tests.unit.report.by_hand import hand_result
from tests.unit.report.synthetic import empty_result, toy_result
from tests.unit.telemetry.exposition import read_exposition
from twin.telemetry.prometheus import histogram, prometheus_text

VLLM_NAMES = {
    "gauge": {
        "num_requests_running", "num_requests_waiting", "num_requests_waiting_by_reason",
        "kv_cache_usage_perc",
    },
    "counter": {
        "prefix_cache_queries_total", "prefix_cache_hits_total", "num_preemptions_total",
        "prompt_tokens_total", "prompt_tokens_cached_total", "generation_tokens_total",
        "request_success_total",
    },
    "histogram": {
        "time_to_first_token_seconds", "inter_token_latency_seconds",
        "request_time_per_output_token_seconds", "e2e_request_latency_seconds",
        "request_queue_time_seconds", "request_prefill_time_seconds",
        "request_decode_time_seconds", "request_inference_time_seconds",
        "iteration_tokens_total", "request_prompt_tokens", "request_generation_tokens",
        "request_num_preemptions", "request_prefill_kv_computed_tokens",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def families():
    return read_exposition(prometheus_text(hand_result(llm="m", policy={"max_model_len": 128})))


@pytest.mark.parametrize(
    "result", [toy_result(), toy_result(replicas=1), hand_result(), empty_result()]
)
def test_the_text_is_valid_and_has_vllms_names_and_types(result):
    families = read_exposition(prometheus_text(result))
    kinds = {kind: set() for kind in VLLM_NAMES}
    for name, family in families.items():
        kinds[family.kind].add(name.removeprefix("vllm:"))
    assert kinds == VLLM_NAMES


def test_counters_are_per_engine(families):
    tokens = families["vllm:prompt_tokens_total"]
    assert tokens.value("vllm:prompt_tokens_total", engine="0", model_name="m") == 130
    assert tokens.value("vllm:prompt_tokens_total", engine="1") == 50
    success = families["vllm:request_success_total"]
    assert success.value("vllm:request_success_total", engine="0") == 2
    preempted = families["vllm:num_preemptions_total"]
    assert preempted.value("vllm:num_preemptions_total", engine="0") == 2
    cached = families["vllm:prompt_tokens_cached_total"]
    assert cached.value("vllm:prompt_tokens_cached_total", engine="1") == 16


def test_what_is_kept_for_all_engines_says_so(families):
    hits = families["vllm:prefix_cache_hits_total"]
    assert hits.value("vllm:prefix_cache_hits_total", engine="all") == 50
    single = read_exposition(prometheus_text(toy_result(replicas=1)))
    name = "vllm:inter_token_latency_seconds"
    assert single[name].value(f"{name}_count", engine="0") > 0


def test_histograms_hold_the_hand_made_latencies(families):
    name = "vllm:time_to_first_token_seconds"
    ttft = families[name]
    # 0.5 lies exactly on a bound, which includes it; 1.0 too.
    assert ttft.value(f"{name}_bucket", engine="0", le="0.25") == 0
    assert ttft.value(f"{name}_bucket", engine="0", le="0.5") == 1
    assert ttft.value(f"{name}_bucket", engine="0", le="0.75") == 1
    assert ttft.value(f"{name}_bucket", engine="0", le="1.0") == 2
    assert ttft.value(f"{name}_sum", engine="0") == pytest.approx(1.5)
    name = "vllm:request_time_per_output_token_seconds"
    assert families[name].value(f"{name}_sum", engine="1") == 0
    assert families[name].value(f"{name}_count", engine="1") == 1
    name = "vllm:request_prefill_kv_computed_tokens"
    assert families[name].value(f"{name}_sum", engine="1") == 34
    name = "vllm:iteration_tokens_total"
    assert families[name].value(f"{name}_sum", engine="0") == 131
    assert families[name].value(f"{name}_bucket", engine="0", le="16384.0") == 3


def test_token_buckets_end_at_the_context_limit(families):
    family = families["vllm:request_prompt_tokens"]
    bounds = {dict(pairs)["le"] for name, pairs in family.samples if name.endswith("_bucket")}
    assert bounds == {"1.0", "2.0", "5.0", "10.0", "20.0", "50.0", "100.0", "+Inf"}


def test_gauges_are_those_of_the_last_step_only_while_requests_remain(families):
    # Replica 1 still has a request; replica 0 has none, whatever its last step reported.
    running = families["vllm:num_requests_running"]
    assert running.value("vllm:num_requests_running", engine="0") == 0
    assert running.value("vllm:num_requests_running", engine="1") == 1
    usage = families["vllm:kv_cache_usage_perc"]
    assert usage.value("vllm:kv_cache_usage_perc", engine="1") == pytest.approx(0.2)
    waiting = families["vllm:num_requests_waiting_by_reason"]
    name = "vllm:num_requests_waiting_by_reason"
    assert waiting.value(name, engine="1", reason="deferred") == 0


def test_a_model_name_may_hold_anything():
    name = 'a"b\\c\nd{}'
    families = read_exposition(prometheus_text(hand_result(llm=name)))
    labels = {dict(pairs)["model_name"] for f in families.values() for _, pairs in f.samples}
    assert labels == {name}


def test_histogram_bounds_are_inclusive_and_nan_is_left_out():
    values = histogram(np.array([1.0, 2.0, 2.5, np.nan, 9.0]), (1.0, 2.0, 5.0))
    assert values.cumulative == (1, 2, 3)
    assert (values.number, values.total) == (4, 14.5)
