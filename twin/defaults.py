"""What an engine sets when the operator sets nothing, by version and GPU."""

from dataclasses import dataclass

from hwmodels.spec import GpuSpec
from twin.errors import InputError
from twin.llm.engine_version import parse_version
from twin.policy import EnginePolicy
from twin.units import GIB

_BIG_GPU_BYTES = 70 * GIB
_FIRST_ASYNCHRONOUS = (0, 14, 0)


@dataclass(frozen=True, slots=True)
class ResolvedPolicy:
    """An `EnginePolicy` with every default filled in."""

    given: EnginePolicy
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    gpu_memory_utilization: float
    async_scheduling: bool

    def as_dict(self) -> dict[str, object]:
        """Return the policy as plain data with the resolved values in place."""
        data = self.given.model_dump(mode="json")
        data.update(
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_model_len=self.max_model_len,
            gpu_memory_utilization=self.gpu_memory_utilization,
            async_scheduling=self.async_scheduling,
        )
        return data


def resolve(
    policy: EnginePolicy, gpu: GpuSpec, engine_version: str, max_position: int, utilization: float
) -> ResolvedPolicy:
    """Fill in vLLM's defaults.

    Large GPUs (70 GiB and more, A100 excepted) serve with `max_num_seqs` 1024 and 8192 batched
    tokens, others with 256 and 2048 (vLLM's `EngineArgs` for its API server). Asynchronous
    scheduling is on from 0.14. With chunked prefill off the budget holds a longest prompt.

    Args:
        policy: what the operator gave.
        gpu: the GPU it runs on.
        engine_version: vLLM's version.
        max_position: the network's own longest context.
        utilization: the version's default `gpu_memory_utilization`.
    """
    big = gpu.memory_bytes >= _BIG_GPU_BYTES and gpu.architecture != "ampere"
    max_model_len = policy.max_model_len or max_position
    budget = policy.max_num_batched_tokens
    if budget is None:
        budget = 8192 if big else 2048
        if not policy.enable_chunked_prefill:
            budget = max(budget, max_model_len)
        budget = max(budget, policy.max_num_seqs or 0)
    _check_sizes(policy, budget, max_model_len)
    seqs = policy.max_num_seqs or min(1024 if big else 256, budget)
    asynchronous = policy.async_scheduling
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
    )


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
