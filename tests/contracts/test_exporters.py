"""Every export target: what its files have to say, and what they may never hold."""

import random

import pytest
import yaml

from tests.conformance.random_policies import random_scenario
from tests.golden.export.cases import BASE, SUMMARY
from twin.errors import InputError
from twin.export.deployment import Deployment, deployment_of
from twin.export.engines import ENGINE_FORMATS
from twin.export.engines.rows import leaves
from twin.export.targets import EXPORTERS
from twin.load import scenario_from
from twin.validation import content_digest

PAIRS = [(name, engine) for name, one in EXPORTERS.items() for engine in one.engines]


def deployment(changes: dict) -> Deployment:
    return deployment_of(scenario_from({**BASE, **changes}), "mine.yaml", SUMMARY)


@pytest.mark.parametrize(("target", "engine"), PAIRS)
@pytest.mark.parametrize("seed", range(3))
def test_the_head_of_every_file_tells_forecast_error_hash_and_verdict(
    target: str, engine: str, seed: int
) -> None:
    rng = random.Random(f"{target} {engine} {seed}")
    given = deployment(random_scenario(engine, rng))
    files = EXPORTERS[target].files(given)
    main = next(iter(files.values()))
    head = " ".join(line[1:].strip() for line in main.splitlines() if line.startswith("#"))
    assert "TTFT mean 62.5 ms" in head
    assert "goodput 12.2 requests/s within TTFT <= 500 ms, TPOT <= 30.0 ms; at P99 met" in head
    assert "mean TTFT 7.6% / 21.5%, mean TPOT 4.0% / 9.0%" in head
    assert content_digest(given.scenario.as_dict()) in head
    assert "not validated on hardware; run: twin-calibrate validate mine.yaml" in head
    form = ENGINE_FORMATS[engine]
    carried = form.write(given.parts[0]).carried
    for key, value, default in leaves(given.scenario.file.policy):
        if value != default and key not in carried:
            assert f"policy.{key} {value}" in head, "lost without a word"


@pytest.mark.parametrize(("target", "engine"), PAIRS)
def test_files_parse_and_are_the_same_every_time(target: str, engine: str) -> None:
    given = deployment(random_scenario(engine, random.Random(engine)))
    files = EXPORTERS[target].files(given)
    assert files == EXPORTERS[target].files(given)
    for name, text in files.items():
        assert text.isascii() or "±" in text
        assert text.endswith("\n")
        if name.endswith(".yaml"):
            assert all(isinstance(one, dict) for one in yaml.safe_load_all(text))


@pytest.mark.parametrize("target", sorted(EXPORTERS))
def test_another_engine_than_was_simulated_is_one_line(target: str) -> None:
    for engine in set(ENGINE_FORMATS) - set(EXPORTERS[target].engines):
        with pytest.raises(InputError, match=f"engine is {engine}"):
            EXPORTERS[target].files(deployment({"engine": {"name": engine}}))


BAD = {
    "vllm": [
        {"max-num-sqes": 4}, {"max-num-seqs": 0}, {"block-size": 24}, {"block-size": 0},
        {"gpu-memory-utilization": 1.01}, {"gpu-memory-utilization": 0}, {"watermark": 1.0},
        {"kv-cache-dtype": "fp9"}, {"kv-cache-dtype": "int8"}, {"quantization": "int4"},
        {"scheduling-policy": "lifo"}, {"max-num-seqs": 64, "max-num-batched-tokens": 63},
        {"tensor-parallel-size": 0}, {"enforce-eager": "yes"}, {"max-num-seqs": "64"},
        {"compilation-config": {"cudagraph_mode": "SOMETIMES"}}, {"num-gpu-blocks-override": 1},
        {"compilation-config": {"cudagraph_modes": "PIECEWISE"}}, {"model": "--port"},
        {"long-prefill-token-threshold": 4097, "max-model-len": 4096},
        {"enable-chunked-prefill": False, "max-num-batched-tokens": 1, "max-model-len": 2},
    ],
    "sglang": [
        {"max-running-request": 4}, {"page-size": 0}, {"mem-fraction-static": 1.0},
        {"chunked-prefill-size": 100, "page-size": 16}, {"kv-cache-dtype": "fp8"},
        {"schedule-policy": "priority"}, {"radix-eviction-policy": "arc"},
        {"schedule-conservativeness": 0}, {"quantization": "int4"}, {"context-length": 0},
        {"cuda-graph-max-bs": 8},
    ],
    "trtllm": [
        {"max_batch": 4}, {"max_batch_size": 0}, {"kv_cache_config": {"tokens_per_block": 48}},
        {"kv_cache_config": {"free_gpu_memory_fraction": 1.0}}, {"stream_interval": 0},
        {"kv_cache_config": {"dtype": "int8"}}, {"batch_wait_max_tokens_ratio": 1.5},
        {"scheduler_config": {"capacity_scheduler_policy": "NO_EVICT"}},
        {"scheduler_config": {"policy": "fcfs"}}, {"num_postprocess_workers": -1},
        {"cuda_graph_config": {"max_batch_size": -1}},
        {"enable_chunked_prefill": True, "max_num_tokens": 16,
         "kv_cache_config": {"tokens_per_block": 32}},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "given"), [(engine, one) for engine, many in BAD.items() for one in many], ids=str
)
def test_a_misspelt_or_impossible_option_cannot_be_written(engine: str, given: dict) -> None:
    with pytest.raises(InputError) as caught:
        ENGINE_FORMATS[engine].options.checked(given, "here")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("engine", "given"),
    [
        ("vllm", {"block-size": 16, "watermark": 0.0, "gpu-memory-utilization": 1}),
        ("vllm", {"max-num-seqs": 64, "max-num-batched-tokens": 64}),
        ("sglang", {"chunked-prefill-size": 112, "page-size": 16, "mem-fraction-static": 0.999}),
        ("trtllm", {"enable_chunked_prefill": True, "max_num_tokens": 32,
                    "kv_cache_config": {"tokens_per_block": 32}}),
        ("trtllm", {"cuda_graph_config": None}),
    ],
)  # fmt: skip
def test_options_at_their_limits_are_kept_as_they_are(engine: str, given: dict) -> None:
    assert ENGINE_FORMATS[engine].options.checked(given, "here").as_dict() == given
