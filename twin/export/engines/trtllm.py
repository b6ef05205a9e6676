"""TensorRT-LLM: a policy as options of its LLM API, and back."""

from collections.abc import Mapping

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
from twin.export.engines.trtllm_options import TrtllmOptions
from twin.export.options import EngineOptions, Value

VERSION = "1.4.0"

ROWS = (
    Row("max_num_seqs", "max_batch_size"),
    Row("max_num_batched_tokens", "max_num_tokens"),
    Row("max_model_len", "max_seq_len"),
    Row("gpu_memory_utilization", "kv_cache_config.free_gpu_memory_fraction"),
    Row(
        "kv_cache_dtype",
        "kv_cache_config.dtype",
        {
            "auto": "auto",
            "bfloat16": "bfloat16",
            "float16": "float16",
            "fp8": "fp8",
            "fp8_e4m3": "fp8",
        },
    ),
    Row("enable_prefix_caching", "kv_cache_config.enable_block_reuse"),
    Row("scheduling_policy", "scheduler_config.waiting_queue_policy"),
    Row("async_scheduling", "disable_overlap_scheduler", {True: False, False: True}),
    Row("eviction", "", {"lru": "lru"}),
    Row("trtllm.tokens_per_block", "kv_cache_config.tokens_per_block"),
    Row("trtllm.capacity_scheduler_policy", "scheduler_config.capacity_scheduler_policy"),
    Row("trtllm.enable_chunked_prefill", "enable_chunked_prefill"),
    Row("trtllm.batch_wait_timeout_iters", "batch_wait_timeout_iters"),
    Row("trtllm.batch_wait_max_tokens_ratio", "batch_wait_max_tokens_ratio"),
    Row("trtllm.cuda_graph_max_batch_size", "cuda_graph_config.max_batch_size"),
    Row("trtllm.cuda_graph_padding", "cuda_graph_config.enable_padding"),
    Row("trtllm.stream_interval", "stream_interval"),
    Row("trtllm.num_postprocess_workers", "num_postprocess_workers"),
)

_GRAPHS = "cuda_graph_config"
_PARALLEL = {"tp": "tensor_parallel_size", "ep": "moe_expert_parallel_size"}


def write(part: Part) -> EngineConfig:
    """Return the options of `trtllm-serve --config` for a part of a deployment.

    Raises:
        InputError: TensorRT-LLM would not start with them.
    """
    file = part.scenario.file
    spec, policy = file.parallelism, file.policy
    options, carried = write_rows(ROWS, policy)
    caveats = version_caveat(VERSION, "TensorRT-LLM", part)
    if checkpoint_has(part):
        carried.add("quantization")
    if policy.num_gpu_blocks is not None:
        tokens = policy.num_gpu_blocks * policy.trtllm.tokens_per_block
        options["kv_cache_config.max_tokens"] = tokens
    carried.add("num_gpu_blocks")
    carried.add("enforce_eager")
    if policy.enforce_eager:
        # null turns graphs off, and then there is nothing to say of their sizes.
        for key in ("cuda_graph_max_batch_size", "cuda_graph_padding"):
            if options.pop(next(r.option for r in ROWS if r.key == f"trtllm.{key}"), None):
                carried.discard(f"trtllm.{key}")
        options[_GRAPHS] = None
    parallel = stated_sizes(spec, _PARALLEL)
    given = {**parallel, **nest(options)}
    checked = TrtllmOptions.checked(given, f"{file.name} for TensorRT-LLM")
    caveats += unmapped("trtllm", "TensorRT-LLM", part, carried)
    return EngineConfig(checked, frozenset(carried), _unwritten(part, options), tuple(caveats))


def _unwritten(part: Part, options: Mapping[str, Value]) -> tuple[str, ...]:
    resolved, own = part.scenario.policy, part.scenario.policy.given.trtllm
    simulated = {
        "max_seq_len": resolved.max_model_len,
        "max_batch_size": resolved.max_num_seqs,
        "max_num_tokens": resolved.max_num_batched_tokens,
        "kv_cache_config.free_gpu_memory_fraction": resolved.gpu_memory_utilization,
        "kv_cache_config.tokens_per_block": own.tokens_per_block,
        "scheduler_config.capacity_scheduler_policy": own.capacity_scheduler_policy,
        "enable_chunked_prefill": str(own.enable_chunked_prefill).lower(),
    }
    return left_out(simulated, options)


def read(options: Mapping[str, Value]) -> dict[str, Value]:
    """Return flat scenario keys of TensorRT-LLM's options.

    Raises:
        InputError: a value that TensorRT-LLM has and a policy has not.
    """
    rows = [row for row in ROWS if row.option]
    found = {f"policy.{key}": value for key, value in read_rows(rows, options, _refuse).items()}
    if _GRAPHS in options and options[_GRAPHS] is None:
        found["policy.enforce_eager"] = True
    pool = options.get("kv_cache_config.max_tokens")
    if pool is not None:
        block = options.get("kv_cache_config.tokens_per_block", 32)
        found["policy.num_gpu_blocks"] = max(1, pool // block)
    sizes = {f"parallelism.{key}": options.get(name, 1) for key, name in _PARALLEL.items()}
    return {**found, **sizes}


def _refuse(option: str, value: Value) -> InputError:
    return InputError(f"{option} {value!r} is not simulated", where="TensorRT-LLM")


def arguments(options: EngineOptions) -> list[str]:
    """Return nothing: most of these options have no argument, the file is named instead."""
    del options
    return []


TRTLLM = EngineFormat(
    name="trtllm",
    title="TensorRT-LLM",
    version=VERSION,
    options=TrtllmOptions,
    rows=ROWS,
    model_option="",
    write=write,
    read=read,
    arguments=arguments,
    command=lambda model, file: ["trtllm-serve", model, "--config", file],
    with_file="trtllm-serve {model} --config {file}",
    image="nvcr.io/nvidia/tensorrt-llm/release:{version}",
    metrics=(
        "trtllm_num_requests_running",
        "trtllm_num_requests_waiting",
        "trtllm_kv_cache_utilization",
    ),
)
