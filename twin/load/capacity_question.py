"""The question of `twin capacity`: names and numbers in, KV capacity at each TP out."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hwmodels.gpus import GPUS
from twin.defaults import resolve
from twin.errors import InputError
from twin.llm.capacity import CapacityQuery, KvCapacity, capacity, capacity_by_tp
from twin.llm.engine_version import ENGINES, check_version
from twin.load.inputs import find_arch
from twin.load.validation import validate
from twin.naming import lookup
from twin.policy import EnginePolicy
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
    block_size: int | None = None
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
    version = _version(question)
    if question.pp != 1 and question.engine != "vllm":
        raise InputError(
            f"pp {question.pp} is not simulated for {question.engine}",
            where="--pp",
            remedy="use --tp",
        )
    policy = resolve(
        _policy(question),
        gpu,
        version or "",
        arch.max_position,
        1.0,
        question.engine,
    )
    tokens = question.max_num_batched_tokens
    return CapacityQuery(
        arch=arch,
        total_memory_bytes=gpu.visible_memory_bytes,
        engine=question.engine,
        engine_version=version,
        tp=question.tp,
        pp=question.pp,
        gpu_memory_utilization=question.gpu_memory_utilization,
        max_model_len=question.max_model_len,
        # What vLLM sets when nobody does; of the others, as in the measured runs.
        max_num_batched_tokens=policy.max_num_batched_tokens
        if question.engine == "vllm"
        else tokens,
        max_num_seqs=question.max_num_seqs,
        block_size=question.block_size or policy.block_size,
        quantization=question.quantization,
        kv_cache_dtype=question.kv_cache_dtype,
        enforce_eager=question.enforce_eager,
    )


def _policy(question: CapacityQuestion) -> EnginePolicy:
    """Return the question's tunables as a policy, so that what a scenario refuses is refused."""
    names = EnginePolicy.model_fields.keys() & asdict(question).keys()
    given = {name: getattr(question, name) for name in sorted(names)}
    kept = {name: value for name, value in given.items() if value is not None}
    return validate(EnginePolicy, kept, "capacity")


def _version(question: CapacityQuestion) -> str | None:
    """The version asked for; else the one vLLM's rules are pinned to, other engines' newest."""
    lookup(dict.fromkeys(ENGINES), question.engine, "engine", where="--engine")
    if question.engine_version is not None:
        check_version(question.engine_version, "--engine-version")
    elif question.engine == "vllm":
        return VLLM_VERSION
    return question.engine_version
