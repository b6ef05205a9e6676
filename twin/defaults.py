"""What an engine sets when the operator sets nothing, by version and GPU."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hwmodels.spec import GpuSpec
from twin.errors import InputError
from twin.llm.engine_version import parse_version
from twin.policy import EnginePolicy
from twin.units import GIB

_BIG_GPU_BYTES = 70 * GIB
_FIRST_ASYNCHRONOUS = (0, 14, 0)

# vLLM's second model runner, on its own from these releases on: for dense networks (its pull
# request 44443) and for all (53183). The first one takes no asynchronous scheduling in a pipeline.
_SECOND_RUNNER_DENSE, _SECOND_RUNNER = (0, 25, 0), (0, 29, 0)

# SGLang's chunked_prefill_size by GPU memory in GB, and its cap on running requests.
_SGLANG_CHUNKS = ((20, 2048), (60, 4096), (160, 8192), (float("inf"), 16384))
_SGLANG_MAX_RUNNING = 4096


@dataclass(frozen=True, slots=True)
class ResolvedPolicy:
    """An `EnginePolicy` with every default filled in."""

    given: EnginePolicy
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    gpu_memory_utilization: float
    async_scheduling: bool
    block_size: int = 16

    def as_dict(self) -> dict[str, object]:
        """Return the policy as plain data with the resolved values in place."""
        data = self.given.model_dump(mode="json")
        data.update(
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_model_len=self.max_model_len,
            gpu_memory_utilization=self.gpu_memory_utilization,
            async_scheduling=self.async_scheduling,
            block_size=self.block_size,
        )
        return data


def resolve(
    policy: EnginePolicy,
    gpu: GpuSpec,
    engine_version: str,
    max_position: int,
    utilization: float,
    engine: str = "vllm",
) -> ResolvedPolicy:
    """Fill in an engine's defaults.

    vLLM: large GPUs (70 GiB and more, A100 excepted) serve with `max_num_seqs` 1024 and 8192
    batched tokens, others with 256 and 2048 (`EngineArgs` for its API server). Asynchronous
    scheduling is on from 0.14. With chunked prefill off the budget holds a longest prompt.

    SGLang 0.5.23: chunks by GPU memory; at most 4096 requests (the KV pool may lower it); pages
    of one token; overlap scheduling.

    TensorRT-LLM (`trtllm-serve`): 2048 requests, 8192 tokens, blocks of 32, overlap scheduling.

    Args:
        policy: what the operator gave.
        gpu: the GPU it runs on.
        engine_version: the engine's version.
        max_position: the network's own longest context.
        utilization: the version's default `gpu_memory_utilization`.
        engine: vllm, sglang or trtllm.
    """
    max_model_len = policy.max_model_len or max_position
    seqs, budget, asynchronous, block_size = _DEFAULTS[engine](policy, gpu, max_model_len)
    if engine == "vllm":
        _check_sizes(policy, budget, max_model_len)
    if asynchronous is None:
        version = parse_version(engine_version)
        asynchronous = version is None or version >= _FIRST_ASYNCHRONOUS
    return ResolvedPolicy(
        given=policy,
        max_num_seqs=seqs,
        max_num_batched_tokens=budget,
        max_model_len=max_model_len,
        gpu_memory_utilization=policy.gpu_memory_utilization or utilization,
        async_scheduling=asynchronous,
        block_size=block_size,
    )


def in_pipeline(
    policy: ResolvedPolicy, engine_version: str, *, experts: bool, where: str
) -> ResolvedPolicy:
    """Return vLLM's policy on several pipeline stages: asynchronous if its model runner can be.

    Raises:
        InputError: asynchronous scheduling is asked of a version that has none there.
    """
    version, first = parse_version(engine_version), _SECOND_RUNNER_DENSE
    if experts:
        first = _SECOND_RUNNER
    if version is None or version >= first or not policy.async_scheduling:
        return policy
    if policy.given.async_scheduling:
        raise InputError(
            f"asynchronous scheduling with pipeline stages is not simulated for vLLM "
            f"{engine_version}",
            where=f"{where}, policy.async_scheduling",
            remedy=f"set it to false, or engine.version to {'.'.join(map(str, first))} or later",
        )
    return replace(policy, async_scheduling=False)


def _check_sizes(policy: EnginePolicy, budget: int, max_model_len: int) -> None:
    """Refuse what vLLM refuses at start-up, with the defaults filled in."""
    if not policy.enable_chunked_prefill and budget < max_model_len:
        raise InputError(
            f"max_num_batched_tokens {budget} is below max_model_len {max_model_len} with "
            "chunked prefill off",
            where="policy",
            remedy="raise the budget, lower max_model_len or set enable_chunked_prefill: true",
        )
    threshold = policy.long_prefill_token_threshold
    if threshold > max_model_len:
        raise InputError(
            f"long_prefill_token_threshold {threshold} is above max_model_len {max_model_len}",
            where="policy",
            remedy="lower it, or give 0 for no cap",
        )


_Sizes = tuple[int, int, bool | None, int]
"""Requests, tokens a step, one step ahead (None: by version), tokens a block."""


def _vllm(policy: EnginePolicy, gpu: GpuSpec, max_model_len: int) -> _Sizes:
    big = gpu.memory_bytes >= _BIG_GPU_BYTES and gpu.architecture != "ampere"
    budget = policy.max_num_batched_tokens
    if budget is None:
        budget = 8192 if big else 2048
        if not policy.enable_chunked_prefill:
            budget = max(budget, max_model_len)
        budget = max(budget, policy.max_num_seqs or 0)
    seqs = policy.max_num_seqs or min(1024 if big else 256, budget)
    return seqs, budget, policy.async_scheduling, policy.block_size


def _sglang(policy: EnginePolicy, gpu: GpuSpec, max_model_len: int) -> _Sizes:  # noqa: ARG001
    memory_gb = gpu.visible_memory_bytes / 1e9
    chunk = next(size for limit, size in _SGLANG_CHUNKS if memory_gb < limit)
    budget = policy.max_num_batched_tokens or chunk
    seqs = policy.max_num_seqs or _SGLANG_MAX_RUNNING
    return seqs, budget, policy.async_scheduling is not False, policy.sglang.page_size


def _trtllm(policy: EnginePolicy, gpu: GpuSpec, max_model_len: int) -> _Sizes:  # noqa: ARG001
    seqs, budget = policy.max_num_seqs or 2048, policy.max_num_batched_tokens or 8192
    return seqs, budget, policy.async_scheduling is not False, policy.trtllm.tokens_per_block


_DEFAULTS: dict[str, Callable[[EnginePolicy, GpuSpec, int], _Sizes]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "trtllm": _trtllm,
}
