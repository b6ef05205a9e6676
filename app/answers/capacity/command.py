"""The `twin capacity` that gives what the page shows."""

import shlex

from app.answers.capacity.deployment import Deployment
from twin.llm.engine_version import default_gpu_memory_utilization
from twin.llm.models import MODELS
from twin.scheduling.vllm_v1 import VLLM_VERSION


def capacity_command(one: Deployment) -> tuple[str, tuple[str, ...]]:
    """Return the command, and why there is none; one of the two is empty."""
    file = one.file
    if file.parallelism.dp > 1 or file.parallelism.ep > 1:
        return "", ("`twin capacity` knows no dp and no ep: no command gives this page's budget.",)
    if file.profile is not None:
        return "", ("`twin capacity` takes no profile: no command gives this page's budget.",)
    words = ["twin", "capacity", "--model", file.llm if file.llm in MODELS else "./config.json"]
    words += ["--gpu", file.gpu]
    for name, value in _options(one).items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return shlex.join(words), ()


def _options(one: Deployment) -> dict[str, object]:
    """Return the options whose defaults are not what the scenario has."""
    file, policy = one.file, one.policy()
    given, spec, engine = file.policy, file.parallelism, file.engine
    vllm = engine.name == "vllm"
    share = default_gpu_memory_utilization(
        engine.name, engine.version, one.gpu.visible_memory_bytes, spec.tp * spec.pp
    )
    tokens = given.max_num_batched_tokens if vllm else policy.max_num_batched_tokens
    values: dict[str, tuple[object, object]] = {
        "engine": (engine.name, "vllm"),
        "engine-version": (engine.version, VLLM_VERSION if vllm else None),
        "tp": (spec.tp, 1),
        "pp": (spec.pp, 1),
        "gpu-memory-utilization": (policy.gpu_memory_utilization, share),
        "max-model-len": (given.max_model_len, None),
        "max-num-batched-tokens": (tokens, None),
        "max-num-seqs": (given.max_num_seqs, None),
        "kv-cache-dtype": (given.kv_cache_dtype, "auto"),
        "quantization": (given.quantization, None),
        "block-size": (policy.block_size, 16 if vllm else None),
        "enforce-eager": (given.enforce_eager, False),
    }
    return {name: value for name, (value, default) in values.items() if value != default}
