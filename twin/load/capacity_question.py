"""The question of `twin capacity`: names and numbers in, KV capacity at each TP out."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hwmodels.gpus import GPUS
from twin.defaults import resolve
from twin.errors import InputError
from twin.llm.capacity import CapacityQuery, KvCapacity, capacity, capacity_by_tp
from twin.load.resolve import find_arch
from twin.naming import lookup
from twin.policy import EnginePolicy, Quantization
from twin.scheduling.vllm_v1 import VLLM_VERSION


@dataclass(frozen=True, slots=True)
class CapacityQuestion:
    """What the user asks; None takes the engine's default for its version and the GPU.

    `max_num_seqs` counts up to that of the runs the overhead was fitted on.
    `base` is the folder a relative path of a `config.json` starts from.
    """

    model: str
    gpu: str
    tp: int = 1
    pp: int = 1
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    kv_cache_dtype: str = "auto"
    quantization: str | None = None
    enforce_eager: bool = False
    block_size: int = 16
    engine: str = "vllm"
    engine_version: str | None = None
    base: Path = Path(".")


@dataclass(frozen=True, slots=True)
class CapacityAnswer:
    """The capacity as asked, and that of every TP the network can be cut into."""

    question: CapacityQuestion
    model_name: str
    max_num_batched_tokens: int | None
    chosen: KvCapacity
    by_tp: dict[int, KvCapacity]

    @property
    def smallest_tp(self) -> int | None:
        """The fewest GPUs on which one longest sequence fits; None: none of those tried."""
        return next((tp for tp, result in sorted(self.by_tp.items()) if result.fits), None)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data: the question, the budget line by line, the table over TP."""
        question = {k: v for k, v in asdict(self.question).items() if k != "base"}
        question["max_num_batched_tokens"] = self.max_num_batched_tokens
        chosen = asdict(self.chosen)
        return {
            **question,
            "model": self.model_name,
            **chosen,
            "notes": list(self.chosen.notes),
            "smallest_fitting_tp": self.smallest_tp,
            "by_tp": [
                {
                    "tp": tp,
                    "fits": result.fits,
                    "kv_blocks": result.kv_blocks,
                    "kv_tokens": result.kv_tokens,
                    "weights_bytes": result.weights_bytes,
                    "kv_bytes": result.kv_bytes,
                    "max_concurrency": result.max_concurrency,
                }
                for tp, result in sorted(self.by_tp.items())
            ],
        }


def answer(question: CapacityQuestion) -> CapacityAnswer:
    """Return how much KV cache fits.

    Raises:
        InputError: an unknown name, or a value no engine starts with.
    """
    query = _query(question)
    return CapacityAnswer(
        question=question,
        model_name=query.arch.name,
        max_num_batched_tokens=query.max_num_batched_tokens,
        chosen=capacity(query),
        by_tp=capacity_by_tp(query),
    )


def _query(question: CapacityQuestion) -> CapacityQuery:
    arch = find_arch(question.model, question.base, "--model")
    gpu = lookup(GPUS, question.gpu, "GPU", where="--gpu")
    _check_quantization(question.quantization)
    query = CapacityQuery(
        arch=arch,
        total_memory_bytes=gpu.visible_memory_bytes,
        engine=question.engine,
        engine_version=_version(question),
        tp=question.tp,
        pp=question.pp,
        gpu_memory_utilization=question.gpu_memory_utilization,
        max_model_len=question.max_model_len,
        max_num_batched_tokens=question.max_num_batched_tokens,
        max_num_seqs=question.max_num_seqs,
        block_size=question.block_size,
        quantization=question.quantization,
        kv_cache_dtype=question.kv_cache_dtype,
        enforce_eager=question.enforce_eager,
    )
    if question.engine != "vllm" or question.max_num_batched_tokens is not None:
        return query
    # What vLLM sets when nobody does; only the sizes of the largest step matter here.
    policy = resolve(EnginePolicy(), gpu, query.engine_version or "", arch.max_position, 1.0)
    return replace(query, max_num_batched_tokens=policy.max_num_batched_tokens)


def _version(question: CapacityQuestion) -> str | None:
    """The version asked for; else the one vLLM's rules are pinned to, other engines' newest."""
    if question.engine_version is None and question.engine == "vllm":
        return VLLM_VERSION
    return question.engine_version


def _check_quantization(quantization: str | None) -> None:
    try:
        TypeAdapter(Quantization | None).validate_python(quantization)
    except ValidationError:
        raise InputError(
            f"unknown quantization {quantization!r}",
            where="--quantization",
            remedy="choose one of none, fp8, int8, int4",
        ) from None
