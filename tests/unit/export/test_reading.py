"""Running configurations, in the forms that people have them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.export.cases import BASE
from twin.errors import InputError
from twin.export.reading.command_line import shell_words
from twin.export.reading.given import Given
from twin.export.reading.scenario import Base, Imported, scenario_of
from twin.export.reading.sources import combined, read_command, read_text_source

MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def read(text: str, engine: str | None = None) -> Given:
    return read_text_source(text, "mine", engine)


def imported(given: Given, **overrides: Any) -> Imported:
    base = Base({"workload": BASE["workload"]}, gpu="h100_sxm", overrides=overrides)
    return scenario_of(given, base, name="mine", where="mine")


def policy(text: str, engine: str | None = None) -> dict[str, Any]:
    return imported(read(text, engine)).file.policy.model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    "text",
    [
        f"vllm serve {MODEL} --max-num-seqs 64 --no-enable-prefix-caching -tp 2",
        f"vllm serve {MODEL} \\\n  --max_num_seqs=64 \\\n  --no-enable-prefix-caching -tp=2",
        f"python3 -m vllm.entrypoints.openai.api_server --model {MODEL} --max-num-seqs 64 "
        "--no-enable-prefix-caching --tensor-parallel-size 2",
        f"docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.33.0 --model {MODEL} "
        "--max-num-seqs 64 --no-enable-prefix-caching --tensor-parallel-size 2",
        f"#!/bin/bash\nset -e  # start\nexport A='x y'\nvllm serve {MODEL} --max-num-seqs 64 "
        "--no-enable-prefix-caching -tp 2 && echo done\n",
        f"model: {MODEL}\nmax-num-seqs: 64\nenable-prefix-caching: false\n"
        "tensor-parallel-size: 2\n",
        f"model: {MODEL}\nmax_num_seqs: 64\nno-enable-prefix-caching: true\n"
        "tensor_parallel_size: 2\n",
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: vllm/vllm-openai:v0.33.0\n"
        f"    args: [--model, {MODEL}, --max-num-seqs, '64', --no-enable-prefix-caching, "
        "--tensor-parallel-size, 2]\n",
        "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n"
        "      - image: busybox\n        command: [sleep, '1']\n      - image: mine:latest\n"
        f"        command: [sh, -c]\n        args: ['exec vllm serve {MODEL} --max-num-seqs 64 "
        "--no-enable-prefix-caching -tp 2']\n",
    ],
)
def test_vllm_in_all_its_forms(text: str) -> None:
    found = imported(read(text)).file
    assert found.policy.model_dump(exclude_unset=True) == {
        "max_num_seqs": 64, "enable_prefix_caching": False,
    }  # fmt: skip
    assert (found.llm, found.engine.name, found.parallelism.tp) == ("llama-3.1-8b", "vllm", 2)


@pytest.mark.parametrize(
    "text",
    [
        f"sglang serve --model-path {MODEL} --page-size 16 --disable-cuda-graph --tp 2",
        f"python -m sglang.launch_server --model {MODEL} --page-size 16 --tensor-parallel-size 2 "
        "--disable-decode-cuda-graph",
        f"model-path: {MODEL}\npage-size: 16\ntp-size: 2\ndisable-decode-cuda-graph: true\n",
    ],
)
def test_sglang_in_all_its_forms(text: str) -> None:
    found = imported(read(text)).file
    assert found.policy.model_dump(exclude_unset=True) == {
        "enforce_eager": True, "sglang": {"page_size": 16},
    }  # fmt: skip
    assert (found.llm, found.engine.name, found.parallelism.tp) == ("llama-3.1-8b", "sglang", 2)


def test_tensorrt_llms_file_goes_before_its_command_line() -> None:
    file = read("max_num_tokens: 4096\nkv_cache_config:\n  dtype: fp8\ncuda_graph_config: null\n")
    command = read_command(
        shell_words(f"trtllm-serve {MODEL} --tp_size 2 --free_gpu_memory_fraction 0.8"), "args"
    )
    found = imported(combined(file, command)).file
    assert found.policy.model_dump(exclude_unset=True) == {
        "max_num_batched_tokens": 4096, "kv_cache_dtype": "fp8", "enforce_eager": True,
        "gpu_memory_utilization": 0.8,
    }  # fmt: skip
    assert (found.engine.name, found.parallelism.tp) == ("trtllm", 2)


def test_a_config_map_beside_the_deployment_is_read() -> None:
    text = (
        "kind: ConfigMap\napiVersion: v1\ndata:\n  extra.yaml: |\n    max_batch_size: 32\n---\n"
        "kind: Deployment\napiVersion: apps/v1\nspec:\n  replicas: 3\n  template:\n    spec:\n"
        f"      containers:\n      - command: [trtllm-serve, {MODEL}, --extra_llm_api_options, "
        "/cfg/extra.yaml]\n"
    )
    found = imported(read(text)).file
    assert found.policy.max_num_seqs == 32
    assert found.cluster.replicas == 3


def test_an_images_tag_is_the_version() -> None:
    found = read(f"docker run vllm/vllm-openai:v0.31.1 --model {MODEL}")
    assert imported(found).file.engine.version == "0.31.1"
    latest = read(f"docker run vllm/vllm-openai:latest --model {MODEL}")
    assert imported(latest).file.engine.version == "0.33.0"


@pytest.mark.parametrize(
    ("text", "tokens"), [("32k", 32000), ("32K", 32768), ("8192", 8192), ("25.6k", 25600)]
)
def test_numbers_as_vllm_reads_them(text: str, tokens: int) -> None:
    found = policy(f"vllm serve {MODEL} --max-model-len {text}")
    assert found == {"max_model_len": tokens}


def test_numbers_as_sglang_reads_them() -> None:
    found = policy(f"sglang serve --model {MODEL} --context-length 16Ki --max-prefill-tokens 8k")
    assert found == {"max_model_len": 16384, "sglang": {"max_prefill_tokens": 8000}}


SECRETS = "sk-verysecret"


@pytest.mark.parametrize(
    "text",
    [
        f"vllm serve {MODEL} --api-key {SECRETS} --max-num-seqs 64",
        f"vllm serve {MODEL} --hf-token={SECRETS} --api_key {SECRETS}",
        f"HF_TOKEN={SECRETS} vllm serve {MODEL}",
        f"docker run -e HF_TOKEN={SECRETS} vllm/vllm-openai:v0.33.0 --model {MODEL}",
        f"model: {MODEL}\napi-key: {SECRETS}\nmax-num-seqs: 64\n",
        f"sglang serve --model-path {MODEL} --api-key {SECRETS} --admin-api-key {SECRETS}",
        f"vllm serve {MODEL} --my-own-token {SECRETS}",
        f"vllm serve {MODEL} --config {SECRETS}.yaml",
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: vllm/vllm-openai:v0.33.0\n"
        f"    env: [{{name: HF_TOKEN, value: {SECRETS}}}]\n    args: [--model, {MODEL}, "
        f"--api-key, {SECRETS}]\n",
    ],
)
def test_keys_and_tokens_are_never_copied(text: str) -> None:
    found = imported(read(text))
    assert SECRETS not in found.text
    assert SECRETS not in "".join(found.notes)
    assert SECRETS not in found.file.model_dump_json()


def test_an_address_with_a_password_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        imported(read(f"vllm serve https://me:{SECRETS}@host/model"))
    assert SECRETS not in str(caught.value)


def test_what_is_not_simulated_is_listed_by_name() -> None:
    found = read(f"vllm serve {MODEL} --served-model-name chat --trust-remote-code -O3 --port 80")
    assert found.passed_over == (
        "served-model-name", "trust-remote-code", "optimization-level", "port",
    )  # fmt: skip
    assert found.unknown == ()
    note = next(n for n in imported(found).notes if n.startswith("Not simulated:"))
    assert "served-model-name" in note


@pytest.mark.parametrize(
    ("engine", "name", "meant"),
    [
        ("vllm", "--max-num-sequences", "max-num-seqs"),
        ("vllm", "--gpu-memory-utilisation", "gpu-memory-utilization"),
        ("sglang", "--max-running-request", "max-running-requests"),
    ],
)
def test_a_misspelt_option_is_told_with_what_was_meant(engine: str, name: str, meant: str) -> None:
    found = read_command([MODEL, name, "7"], "mine", engine)
    assert found.unknown == ((name[2:], f"did you mean {meant!r}?"),)


def test_values_that_no_policy_has_are_one_line() -> None:
    for text in (
        f"vllm serve {MODEL} --kv-cache-dtype nvfp4",
        f"vllm serve {MODEL} --max-num-seqs many",
        f"vllm serve {MODEL} --watermark 1.0",
        f"sglang serve --model {MODEL} --page-size 0",
        f"sglang serve --model {MODEL} --schedule-policy hrrn",
    ):
        with pytest.raises(InputError) as caught:
            imported(read(text))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hello there", "neither an engine's YAML"),
        ("", "neither an engine's YAML"),
        ("[1, 2]", "neither an engine's YAML"),
        ("port: 8000\nhost: x\n", "does not show whose"),
        ("a: 1\n---\nb: 2\n", "several documents"),
        ("apiVersion: v1\nkind: Service\n", "no container that starts a server"),
        ("a: [", "is not valid YAML"),
    ],
)
def test_files_of_another_kind_are_one_line(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(text)


def test_engine_option_decides_and_must_agree() -> None:
    assert read("port: 8000\n", "vllm").engine == "vllm"
    with pytest.raises(InputError, match="is vllm's"):
        read(f"vllm serve {MODEL}", "sglang")


def test_a_network_that_is_not_known_is_one_line_and_can_be_named() -> None:
    found = read("vllm serve someone/unheard-of-9b")
    with pytest.raises(InputError, match="network 'someone/unheard-of-9b' is not known"):
        imported(found)
    assert imported(found, llm="qwen3-8b").file.llm == "qwen3-8b"


def test_a_folder_with_a_config_is_the_network(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    found = imported(read(f"vllm serve {tmp_path}"))
    assert found.file.llm == str(tmp_path / "config.json")


def test_a_quantised_checkpoint_without_a_network_of_its_own() -> None:
    found = imported(read("vllm serve Qwen/Qwen3-14B-AWQ --quantization awq_marlin"))
    assert (found.file.llm, found.file.policy.quantization) == ("qwen3-14b", "int4")
    assert any("awq_marlin is taken from the checkpoint" in note for note in found.notes)


def test_a_relative_of_a_network_is_named_for_the_way_back() -> None:
    notes = imported(read("vllm serve meta-llama/Llama-3.1-8B-Instruct")).notes
    assert any("twin export will name meta-llama/Llama-3.1-8B: put your own" in n for n in notes)
    notes = imported(read("vllm serve meta-llama/Llama-3.1-8B")).notes
    assert not any("put your own" in note for note in notes)


def test_the_gpu_has_to_be_given() -> None:
    with pytest.raises(InputError, match="on which GPU"):
        scenario_of(read(f"vllm serve {MODEL}"), Base(), name="x", where="mine")
    with pytest.raises(InputError, match="did you mean 'h100_sxm'"):
        scenario_of(read(f"vllm serve {MODEL}"), Base(gpu="h100_sxn"), name="x", where="mine")


def test_without_a_base_the_load_is_a_stand_in_and_says_so() -> None:
    found = scenario_of(read(f"vllm serve {MODEL}"), Base(gpu="h100_sxm"), name="x", where="mine")
    assert any("those of the example" in note for note in found.notes)
    assert "#" in found.text


WORDS = st.sampled_from(
    ["vllm", "serve", "sglang", "trtllm-serve", "-m", "dynamo.vllm", "--max-num-seqs", "-tp", "2",
     "--model", "Qwen/Qwen3-8B", "--no-", "--", "-", "=", "--=", "--compilation-config", "{", "[]",
     "vllm/vllm-openai:v0.33.0", "--config", "x.yaml", "-O3", "--page-size", "''", "--a.b", "1k"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["apiVersion", "kind", "spec", "template", "containers", "image", "command", "args", "data",
     "replicas", "modelArtifacts", "decode", "parallelism", "services", "components", "model",
     "max-num-seqs", "kv_cache_config", "cuda_graph_config", "compilation-config", "extraPodSpec"]
)  # fmt: skip
TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 99), WORDS, st.just("ConfigMap")),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=20,
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.lists(WORDS, max_size=9).map(" ".join), TREES.map(json.dumps), st.text()))
def test_no_file_ends_in_anything_but_a_scenario_or_one_line(text: str) -> None:
    assert "\n" not in outcome(text)


def outcome(text: str) -> str:
    """Return the GPU of the scenario in a text, or the line that refuses it."""
    try:
        return imported(read(text)).file.gpu
    except InputError as error:
        return str(error)


def test_deep_and_hostile_files_end_in_one_line() -> None:
    for text in ("[" * 5000, "{a: " * 3000, "a: &x [*x]\n", "a: !!python/object:os.system x\n"):
        with pytest.raises(InputError):
            read(text)


@pytest.mark.parametrize("options", ["--max-num-seqs 64", "--no-enable-prefix-caching", "-tp 2"])
def test_the_model_may_follow_options(options: str) -> None:
    assert read(f"vllm serve {options} {MODEL} --seed 1").model == MODEL


@pytest.mark.parametrize("word", ["false", "True"])
def test_a_flag_with_a_value_is_refused_not_turned_on(word: str) -> None:
    with pytest.raises(InputError, match="enable-prefix-caching takes no value") as refused:
        read(f"vllm serve {MODEL} --enable-prefix-caching {word}")
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("value", [["fp8"], {"a": 1}])
def test_a_quantization_that_is_no_name_is_one_line(value: Any) -> None:
    text = json.dumps({"model": MODEL, "max-num-seqs": 8, "quantization": value})
    with pytest.raises(InputError, match="quantization"):
        imported(read(text))


def test_unknown_names_are_shown_as_short_plain_text() -> None:
    found = imported(read(f"vllm serve {MODEL} '--a\x1b[31m' 1 --{'x' * 500} 2"))
    assert "\x1b" not in found.text
    assert "x" * 81 not in found.text
    assert yaml.safe_load(found.text)["llm"] == found.file.llm


def test_an_endless_word_is_not_taken_apart_for_minutes() -> None:
    started = time.process_time()
    with pytest.raises(InputError):
        imported(read(f"vllm serve {MODEL} --max-num-seqs '{'8' * 2_000_000}'"))
    assert time.process_time() - started < 10


def test_a_value_is_told_once() -> None:
    text = f"model: {MODEL}\nkv_cache_config: {{tokens_per_block: 48}}\n"
    with pytest.raises(InputError, match=r"48 is no power of two$"):
        imported(read(text, "trtllm"))
