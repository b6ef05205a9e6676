"""SGLang: a policy as the options of `sglang serve`, and back."""

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
from twin.export.engines.rows import Row, read_rows, write_rows
from twin.export.engines.sglang_options import SglangOptions
from twin.export.options import EngineOptions, Value

VERSION = "0.5.23"

_OFF = {True: False, False: True}

ROWS = (
    Row("max_num_seqs", "max-running-requests"),
    Row("max_num_batched_tokens", "chunked-prefill-size"),
    Row("max_model_len", "context-length"),
    Row("gpu_memory_utilization", "mem-fraction-static"),
    Row(
        "kv_cache_dtype",
        "kv-cache-dtype",
        {
            "auto": "auto",
            "bfloat16": "bfloat16",
            "fp8_e4m3": "fp8_e4m3",
            "fp8": "fp8_e4m3",
            "fp8_e5m2": "fp8_e5m2",
        },
        {"bf16": "bfloat16"},
    ),
    Row("quantization", "quantization", {"fp8": "fp8"}, {"w8a8_fp8": "fp8"}),
    Row("enable_prefix_caching", "disable-radix-cache", _OFF),
    Row("scheduling_policy", "enable-priority-scheduling", {"fcfs": False, "priority": True}),
    Row("async_scheduling", "disable-overlap-schedule", _OFF),
    Row("eviction", "", {"lru": "lru"}),
    Row("enforce_eager", "disable-decode-cuda-graph"),
    Row("sglang.page_size", "page-size"),
    Row("sglang.max_prefill_tokens", "max-prefill-tokens"),
    Row("sglang.schedule_conservativeness", "schedule-conservativeness"),
    Row("sglang.schedule_policy", "schedule-policy", {n: n for n in ("fcfs", "lof", "lpm")}),
    Row("sglang.radix_eviction_policy", "radix-eviction-policy"),
    Row("sglang.enable_mixed_chunk", "enable-mixed-chunk"),
    Row("sglang.cuda_graph_max_bs", "cuda-graph-max-bs-decode"),
)

_PARALLEL = {"tp": "tp-size", "ep": "ep-size"}


def write(part: Part) -> EngineConfig:
    """Return the options of `sglang serve` for a part of a deployment.

    Raises:
        InputError: SGLang would not start with them.
    """
    file = part.scenario.file
    spec, policy = file.parallelism, file.policy
    options, carried = write_rows(ROWS, policy)
    caveats = version_caveat(VERSION, "SGLang", part)
    if checkpoint_has(part):
        options.pop("quantization", None)
        carried.add("quantization")
    if policy.num_gpu_blocks is not None:
        options["max-total-tokens"] = policy.num_gpu_blocks * policy.sglang.page_size
    carried.add("num_gpu_blocks")
    if policy.enforce_eager:
        options["disable-prefill-cuda-graph"] = True
    else:
        caveats.append(
            "SGLang captures prefills in pieces by default (cuda-graph-backend-prefill breakable); "
            "they were simulated as launched one by one."
        )
    parallel = stated_sizes(spec, _PARALLEL)
    given = {"model-path": part.model, **parallel, **options}
    checked = SglangOptions.checked(given, f"{file.name} for SGLang")
    caveats += unmapped("sglang", "SGLang", part, carried)
    return EngineConfig(checked, frozenset(carried), _unwritten(part, options), tuple(caveats))


def _unwritten(part: Part, options: Mapping[str, Value]) -> tuple[str, ...]:
    resolved, own = part.scenario.policy, part.scenario.policy.given.sglang
    simulated = {
        "context-length": resolved.max_model_len,
        "chunked-prefill-size": resolved.max_num_batched_tokens,
        "mem-fraction-static": resolved.gpu_memory_utilization,
        "page-size": own.page_size,
        "max-prefill-tokens": 16384,
        "schedule-policy": own.schedule_policy,
        "schedule-conservativeness": own.schedule_conservativeness,
        "radix-eviction-policy": own.radix_eviction_policy,
    }
    return left_out(simulated, options)


def read(options: Mapping[str, Value]) -> dict[str, Value]:
    """Return flat scenario keys of SGLang's options.

    Raises:
        InputError: a value that SGLang has and a policy has not.
    """
    rows = [row for row in ROWS if row.option]
    found = {f"policy.{key}": value for key, value in read_rows(rows, options, _refuse).items()}
    pool = options.get("max-total-tokens")
    if pool is not None:
        found["policy.num_gpu_blocks"] = max(1, pool // options.get("page-size", 1))
    sizes = {f"parallelism.{key}": options.get(name, 1) for key, name in _PARALLEL.items()}
    return {**found, **sizes}


def _refuse(option: str, value: Value) -> InputError:
    return InputError(f"{option} {value!r} is not simulated", where="SGLang")


def arguments(options: EngineOptions) -> list[str]:
    """Return options as `sglang serve` takes them; a flag that is off is left out."""
    found: list[str] = []
    for name, value in options.as_dict().items():
        if isinstance(value, bool):
            found += [f"--{name}"] if value else []
        else:
            found += [f"--{name}", str(value)]
    return found


SGLANG = EngineFormat(
    name="sglang",
    title="SGLang",
    version=VERSION,
    options=SglangOptions,
    rows=ROWS,
    model_option="model-path",
    write=write,
    read=read,
    arguments=arguments,
    command=lambda _model, _file: ["sglang", "serve"],
    with_file="sglang serve --config {file}",
    image="lmsysorg/sglang:v{version}",
    metrics=("sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage"),
)
