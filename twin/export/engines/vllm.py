"""vLLM: a policy as the options of `vllm serve`, and back."""

import json
from collections.abc import Mapping
from typing import get_args

from twin.errors import InputError
from twin.export.deployment import Part
from twin.export.engines.config import (
    EngineConfig,
    EngineFormat,
    checkpoint_has,
    left_out,
    stated_sizes,
    unmapped,
    version_caveat,
)
from twin.export.engines.rows import Row, nest, read_rows, write_rows
from twin.export.engines.vllm_options import VllmOptions
from twin.export.options import EngineOptions, Value
from twin.policy import KvCacheDtype

VERSION = "0.33.0"

_PER_TOKEN_HEAD = ("int4_per_token_head", "int8_per_token_head", "fp8_per_token_head")
_KV = ("auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2", *_PER_TOKEN_HEAD)
_KV_DTYPES = {name: name for name in _KV if name in get_args(KvCacheDtype)}

# `fp8` is for checkpoints that are FP8 already; at load it is spelt fp8_per_tensor since vLLM's
# `Fp8Config` refuses the former (0.33.0, `layers/quantization/fp8.py`).
_FP8_AT_LOAD = {"fp8": "fp8_per_tensor"}
_FP8_ALSO = {"fp8": "fp8", "fp8_per_block": "fp8", "fp8_per_channel": "fp8"}

ROWS = (
    Row("max_num_seqs", "max-num-seqs"),
    Row("max_num_batched_tokens", "max-num-batched-tokens"),
    Row("max_model_len", "max-model-len"),
    Row("block_size", "block-size"),
    Row("num_gpu_blocks", "num-gpu-blocks-override"),
    Row("gpu_memory_utilization", "gpu-memory-utilization"),
    Row("kv_cache_dtype", "kv-cache-dtype", _KV_DTYPES),
    Row("quantization", "quantization", _FP8_AT_LOAD, _FP8_ALSO),
    Row("enable_prefix_caching", "enable-prefix-caching"),
    Row("enable_chunked_prefill", "enable-chunked-prefill"),
    Row("long_prefill_token_threshold", "long-prefill-token-threshold"),
    Row("scheduling_policy", "scheduling-policy"),
    Row("scheduler_reserve_full_isl", "scheduler-reserve-full-isl"),
    Row("watermark", "watermark"),
    Row("async_scheduling", "async-scheduling"),
    Row("eviction", "", {"lru": "lru"}),
    Row("enforce_eager", "enforce-eager"),
    Row(
        "cudagraph_mode",
        "compilation-config.cudagraph_mode",
        {"piecewise": "PIECEWISE", "full_and_piecewise": "FULL_AND_PIECEWISE"},
    ),
    Row("max_cudagraph_capture_size", "max-cudagraph-capture-size"),
)

_PARALLEL = {
    "tp": "tensor-parallel-size",
    "pp": "pipeline-parallel-size",
    "dp": "data-parallel-size",
}


def write(part: Part) -> EngineConfig:
    """Return the options of `vllm serve` for a part of a deployment.

    Raises:
        InputError: vLLM would not start with them.
    """
    file = part.scenario.file
    spec, policy = file.parallelism, file.policy
    options, carried = write_rows(ROWS, policy)
    caveats = version_caveat(VERSION, "vLLM", part)
    if checkpoint_has(part):
        options.pop("quantization", None)
        carried.add("quantization")
    parallel = stated_sizes(spec, _PARALLEL)
    if spec.ep > 1 and spec.ep == spec.tp * spec.dp:
        parallel["enable-expert-parallel"] = True
    elif spec.ep > 1:
        caveats.append(
            f"parallelism.ep {spec.ep}: vLLM spreads experts over all {spec.tp * spec.dp} GPUs of "
            "a stage or over none; it is not told to."
        )
    given = {"model": part.model, **parallel, **nest(options)}
    checked = VllmOptions.checked(given, f"{file.name} for vLLM")
    caveats += unmapped("vllm", "vLLM", part, carried)
    return EngineConfig(checked, frozenset(carried), _unwritten(part, options), tuple(caveats))


def _unwritten(part: Part, options: Mapping[str, Value]) -> tuple[str, ...]:
    resolved = part.scenario.policy
    simulated = {
        "max-model-len": resolved.max_model_len,
        "max-num-seqs": resolved.max_num_seqs,
        "max-num-batched-tokens": resolved.max_num_batched_tokens,
        "gpu-memory-utilization": resolved.gpu_memory_utilization,
        "block-size": resolved.block_size,
        "async-scheduling": str(resolved.async_scheduling).lower(),
        "enable-prefix-caching": "true",
        "enable-chunked-prefill": "true",
    }
    return left_out(simulated, options)


def read(options: Mapping[str, Value]) -> dict[str, Value]:
    """Return flat scenario keys of vLLM's options.

    Raises:
        InputError: a value that vLLM has and a policy has not.
    """
    found = {
        f"policy.{key}": value
        for key, value in read_rows([r for r in ROWS if r.option], options, _refuse).items()
    }
    sizes = {k: int(options.get(name, 1)) for k, name in _PARALLEL.items()}
    ep = sizes["tp"] * sizes["dp"] if options.get("enable-expert-parallel") else 1
    return {**found, **{f"parallelism.{key}": n for key, n in {**sizes, "ep": ep}.items()}}


def _refuse(option: str, value: Value) -> InputError:
    return InputError(f"{option} {value!r} is not simulated", where="vLLM")


def arguments(options: EngineOptions) -> list[str]:
    """Return options as `vllm serve` takes them after the model's name."""
    found: list[str] = []
    for name, value in options.as_dict().items():
        if name == "model":
            continue
        if isinstance(value, bool):
            found.append(f"--{name}" if value else f"--no-{name}")
        elif isinstance(value, dict):
            found += [f"--{name}", json.dumps(value)]
        else:
            found += [f"--{name}", str(value)]
    return found


VLLM = EngineFormat(
    name="vllm",
    title="vLLM",
    version=VERSION,
    options=VllmOptions,
    rows=ROWS,
    model_option="model",
    write=write,
    read=read,
    arguments=arguments,
    command=lambda model, _file: ["vllm", "serve", model],
    with_file="vllm serve --config {file}",
    image="vllm/vllm-openai:v{version}",
    metrics=("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"),
)
