"""`twin simulate`: keys, values and outputs that it refuses."""

import json
import sys
from pathlib import Path

import pytest

from tests.unit.cli.refused.one_line import HEADER, ROW, assert_one_line, simulate


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("policy.block_size=0", "policy.block_size: input should be greater than 0, not 0"),
        ("policy.blok_size=16", "did you mean 'block_size'?"),
        ("polcy.block_size=16", "did you mean 'policy'?"),
        ("cluster.replicas=0", "cluster.replicas"),
        ("parallelism.tp=0", "parallelism.tp"),
        ("parallelism.tp=3", "tp can be 1, 2, 4"),
        ("parallelism.pp=40", "pp can be 1 to 32"),
        ("gpu=h200_sxn", "did you mean 'h200_sxm'?"),
        ("llm=llama-3.1-8", "did you mean 'llama-3.1-8b'?"),
        ("llm=llama-3.1-405b", "does not fit on 1 x h100_sxm"),
        ("llm=nowhere/config.json", "nowhere/config.json"),
        ("engine.name=vlm", "'vllm'"),
        ("engine.version=newest", "not a version"),
        ("seed=-1", "seed"),
        ("seed=x", "seed"),
        ("slo.ttft_s=.nan", "slo.ttft_s"),
        ("slo.ttft_s=0", "slo.ttft_s"),
        ("horizon_s=-3", "horizon_s"),
        ("workload.arrivals.rate=1e300", "workload.arrivals.rate"),
        ("workload.arrivals.rate=.inf", "workload.arrivals.rate"),
        ("workload.num_requests=1000000000000", "workload.num_requests"),
        ("workload.kind=syntetic", "workload"),
        ("workload.prompt_tokens=-4", "workload.prompt_tokens"),
        ("policy.max_num_batched_tokens=8", "max_num_seqs"),
        ("policy.num_gpu_blocks=1", "give at least 2"),
        ("policy.num_gpu_blocks=500", "set policy.max_model_len to at most 7984"),
        ("schema_version=2", "schema_version: input should be 1, not 2"),
        ("policy=none.yaml", "none.yaml: no such policy file"),
        ("horizon_s=1e308", "horizon_s"),
        ("cluster.startup_s=1e308", "cluster.startup_s"),
        ("cluster.failures={scheduled: [{at_s: 0, replica: 0, down_s: 1e308}]}", "down_s"),
        ("cluster.failures={random: {mtbf_s: 1e-9, mttr_s: 0}}", "cluster.failures.random.mtbf_s"),
        ("cluster.failures={max_requeues: 100000}", "cluster.failures.max_requeues"),
        ("cluster.autoscaler={target: 1, max_replicas: 2, interval_s: 1e-6}", "interval_s"),
        ("cluster={pools: []}", "cluster.pools: the list is too short"),
        ("clients={retry: {kind: none, max_attempts: 3}}", "choose one of kind"),
    ],
)
def test_bad_keys_and_values(twin, assignment, says):
    extra = ["policy.max_num_seqs=16"] if "max_num_batched_tokens=8" in assignment else []
    assert_one_line(simulate(twin, assignment, *extra), says)


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("policy.num_gpu_blocks=1000000000", "policy.num_gpu_blocks: input should be less"),
        ("workload.output_tokens={kind: lognormal, mean: 1e-300, std: 1e7}", "times mean"),
        ('name="\\e[31m"', "unprintable character"),
        ('name="\\ud800"', "unprintable character"),
        ("parallelism.tp=3", "chat-h100, parallelism.tp: tp 3 does not divide"),
    ],
)
def test_values_beyond_reason(twin, assignment, says):
    assert_one_line(simulate(twin, assignment), says)


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("seed=true", "seed: give a number"),
        ("policy.max_num_seqs=yes", "max_num_seqs: give a number"),
        ("policy.enable_prefix_caching=1", "enable_prefix_caching: give true or false"),
        ("policy.enable_prefix_caching='yes'", "enable_prefix_caching: give true or false"),
        ("slo.ttft_s=on", "ttft_s: give a number"),
        ("workload.num_requests=true", "num_requests: give a number"),
        ("workload.arrivals.rate=true", "rate: give a number"),
        ("cluster.replicas=1025", "cluster.replicas"),
    ],
)
def test_flags_are_no_numbers(twin, assignment, says):
    assert_one_line(simulate(twin, assignment), says)


@pytest.mark.parametrize(
    ("assignments", "says"),
    [
        (("llm=llama-3.1-8b-fp8", "policy.quantization=none"), "quantization 'none' asked of"),
        (
            ("engine.name=sglang", "engine.version=0.33.0"),
            "engine.version: 0.33.0 is a version of vLLM, not of sglang",
        ),
        (
            ("engine.name=trtllm", "engine.version=1.0.0", "policy.scheduling_policy=priority"),
            "policy.scheduling_policy: TensorRT-LLM has no scheduling_policy priority before 1.4.0",
        ),
    ],
)
def test_what_a_network_or_an_engine_cannot_have(twin, assignments, says):
    assert_one_line(simulate(twin, *assignments), says)


def test_a_version_of_countless_digits_names_none(twin):
    assert_one_line(simulate(twin, f'engine.version="{"9" * 5000}.0"'), "is not a version")


def test_a_network_of_countless_blocks(twin):
    sizes = ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size")
    config = {**dict.fromkeys(sizes, 1), "vocab_size": 10, "max_position_embeddings": 100}
    Path("tiny.json").write_text(json.dumps(config))
    assert_one_line(simulate(twin, "llm=./tiny.json"), "set policy.num_gpu_blocks")


def test_the_compiled_engine_without_numba(twin, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    outcome = twin("simulate", "chat-h100", "--engine", "compiled")
    assert_one_line(outcome, "needs numba", "pip install numba")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("simulate", "none.yaml"), "no such scenario file"),
        (("simulate", "chat-h10"), "did you mean 'chat-h100'?"),
        (("simulate", "."), "is a folder"),
        (("simulate",), "scenario"),
        (("simulate", "chat-h100", "--sett", "a=1"), "--sett"),
        (("simulate", "chat-h100", "--set", "a"), "key=value"),
        (("simulate", "chat-h100", "--json", "no/such/f.json"), "folder does not exist"),
        (("simulate", "\x00"), "path"),
    ],
)
def test_bad_arguments(twin, arguments, says):
    assert_one_line(twin(*arguments), says)


def test_the_input_is_never_replaced(twin):
    assert twin("scenario", "init", "scenario.yaml")[0] == 0
    before = Path("scenario.yaml").read_text(encoding="utf-8")
    for output in (("--json", "scenario.yaml"), ("--out", ".")):
        assert_one_line(twin("simulate", "scenario.yaml", *output), "would replace the input")
    assert Path("scenario.yaml").read_text(encoding="utf-8") == before


def test_the_trace_is_never_replaced(twin, tmp_path):
    trace = tmp_path / "t.csv"
    trace.write_text(HEADER + ROW)
    asked = ("simulate", "chat-h100", "--set", "workload.path=t.csv", "--json", "t.csv")
    assert_one_line(twin(*asked), "would replace the input")
    assert trace.read_text() == HEADER + ROW


def test_one_place_for_two_outputs(twin):
    assert_one_line(
        twin("simulate", "chat-h100", "--out", "x", "--json", "./x"), "--out writes there too"
    )


@pytest.mark.parametrize("option", ["--json", "--out"])
def test_an_empty_output_name(twin, option):
    assert_one_line(twin("simulate", "chat-h100", option, ""), f"{option}: is empty")
    assert list(Path(".").iterdir()) == []
